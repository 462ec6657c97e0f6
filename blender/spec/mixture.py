"""The source of every row of a blend and the row's index in that source, in closed form at any offset.

Event-time merge is stride scheduling (Waldspurger, 1995) without its state. Source s, with w_s of the w rows
of a step, has an event whenever w_s x passes j + 1/2 (x in steps). A blend is all events in order of time,
ties in the order of the sources. With whole weights the events of a step lie strictly inside it, so every
step has exactly w_s rows of source s and the order within a step repeats:

    weights 3, 1      source 0 at 1/6 3/6 5/6, source 1 at 1/2      step: 0 0 1 0 | 0 0 1 0 | ...

A schedule gives shares of a step instead, which change from row to row. Then w_s x becomes the integral of
the share, and times are rounded up to 2^-16 of a row. Shares are multiples of 2^-32 and integrals are exact
in 128 bits, so every machine computes the same order.

Row numbers, counts and their inverse need no sampling, replay or storage: offset 1e12 costs as much as
offset 0. The count of a source is never further than 1 + (w_s / w) S / 2 rows from its exact share.

An updated blend is a sequence of pieces, each valid from its first step on. The arithmetic is in
`native/src/blend/mixture.rs`; this module is its numpy interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from factory._native import MixturePlan, MixtureTimeline

Ints = npt.NDArray[np.int64]
ScheduleKind = Literal["constant", "stepped", "linear", "cosine"]

MAX_ROWS_PER_STEP = 1 << 20
MAX_OFFSET = 1 << 42  # 4.4e12 steps; times MAX_ROWS_PER_STEP it still fits 64 bits
MAX_SOURCES = 1 << 16
WHOLE = 1 << 32  # the unit of a share is 1 / WHOLE; the shares of a knot sum to it


class MixturePiece:
    """The mixture of a range of steps. Make it with `constant` or `scheduled`."""

    def __init__(self, plan: MixturePlan) -> None:
        self.plan = plan

    @property
    def n_sources(self) -> int:
        """The number of sources, paused ones included."""
        return self.plan.n_sources

    @property
    def rows_per_step(self) -> int:
        """Rows per step over all sources."""
        return self.plan.rows_per_step

    @property
    def weights(self) -> tuple[int, ...] | None:
        """Rows per step of each source; None for a schedule."""
        weights = self.plan.weights
        return None if weights is None else tuple(weights)


def constant(weights: Sequence[int]) -> MixturePiece:
    """Fixed whole weights; raises ValueError for a negative weight, all zeros, and too many rows."""
    return MixturePiece(MixturePlan.whole(list(weights)))


def scheduled(
    kind: ScheduleKind, rows_per_step: int, knots: Sequence[tuple[int, Sequence[int]]]
) -> MixturePiece:
    """Changing shares, by knots of (step from the piece's front, shares in units of 1 / WHOLE).

    The first knot's shares also apply before it, and the last knot's after it. In between, `stepped` keeps
    the previous knot's shares, `linear` interpolates, and `cosine` follows half a wave in 64 chords. Raises
    ValueError for knots out of order and for shares that do not sum to WHOLE.
    """
    steps = [step for step, _ in knots]
    shares = np.array([list(shares) for _, shares in knots], dtype=np.int64)
    return MixturePiece(MixturePlan.schedule(kind, rows_per_step, steps, shares.reshape(-1)))


def shares_of(proportions: Sequence[float]) -> tuple[int, ...]:
    """Proportions of any sum as whole numbers that sum to WHOLE, by largest remainders, ties to the first.

    The arithmetic is exact on the fractions that floats represent. Raises ValueError for a negative or
    infinite number, and if all are zero.
    """
    if not all(0 <= part < float("inf") for part in proportions):
        wrong = next(part for part in proportions if not 0 <= part < float("inf"))
        raise ValueError(f"A proportion is {wrong}. Use numbers of zero or more.")
    if not any(proportions):
        raise ValueError("All proportions are zero. Give one source at least a number above zero.")
    parts = [Fraction(part) for part in proportions]
    scale = Fraction(WHOLE) / sum(parts)
    exact = [part * scale for part in parts]
    shares = [int(part) for part in exact]
    by_remainder = sorted(range(len(parts)), key=lambda source: (shares[source] - exact[source], source))
    for source in by_remainder[: WHOLE - sum(shares)]:
        shares[source] += 1
    return tuple(shares)


class Mixture:
    """The whole blend: pieces and their first steps, the first from 0; immutable.

    A piece replaces earlier ones that begin at the same step or later.
    """

    def __init__(self, pieces: Sequence[MixturePiece], starts: Sequence[int] = (0,)) -> None:
        self._timeline = MixtureTimeline(list(starts), [piece.plan for piece in pieces])

    @classmethod
    def _of(cls, timeline: MixtureTimeline) -> Mixture:
        mixture = cls.__new__(cls)
        mixture._timeline = timeline
        return mixture

    def extended(self, pieces: Sequence[MixturePiece], starts: Sequence[int]) -> Mixture:
        """This mixture with further pieces; both share the existing ones."""
        return self._of(self._timeline.extended(list(starts), [piece.plan for piece in pieces]))

    @property
    def n_sources(self) -> int:
        """The number of sources of the last piece; earlier pieces have as many or fewer."""
        return self._timeline.n_sources

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each piece."""
        return tuple(self._timeline.starts)

    def pieces(self, first: int = 0) -> list[tuple[int, MixturePiece]]:
        """The pieces from number `first` on, with their first steps."""
        return [(start, MixturePiece(plan)) for start, plan in self._timeline.plans(first)]

    def rows_per_step(self, step: int) -> int:
        """Rows of one step."""
        return self._timeline.rows_per_step(step)

    def first_row(self, step: int) -> int:
        """Rows of all steps before `step`, which is at most MAX_OFFSET."""
        return self._timeline.first_row(step)

    def piece_end(self, step: int) -> int:
        """The step at which the piece that holds `step` ends; MAX_OFFSET for the last."""
        return self._timeline.piece_end(step)

    def indivisible(self, offset: int, stop: int, ranks: int) -> tuple[int, int] | None:
        """First step and rows per step of the first piece here that `ranks` does not divide."""
        return self._timeline.indivisible(offset, stop, ranks)

    def counts(self, rows: Ints) -> Ints:
        """Rows of each source among the first `rows[i]` rows of the blend; shape [len(rows), S]."""
        counts = np.empty((len(rows), self.n_sources), dtype=np.int64)
        self._timeline.counts(rows, counts.reshape(-1))
        return counts

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Source, and index within the source over the whole blend, of each row."""
        source, index = np.empty_like(rows), np.empty_like(rows)
        self._timeline.place(rows, source, index)
        return source, index

    def row_of(self, source: int, index: Ints) -> Ints:
        """The row number of the `index`-th row of `source`; -1 if the blend never reaches it."""
        rows = np.empty_like(index)
        self._timeline.row_of(source, index, rows)
        return rows

    def step_of(self, rows: Ints) -> Ints:
        """The step each row belongs to."""
        steps = np.empty_like(rows)
        self._timeline.step_of(rows, steps)
        return steps

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps from the front that need at most `rows` rows of `source`; None if all steps do."""
        return self._timeline.steps_within(source, rows)
