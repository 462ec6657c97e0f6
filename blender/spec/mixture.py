"""Which source every row of a blend comes from, and which of its rows: counts in closed form at any offset.

Event-time merge, which is stride scheduling (Waldspurger, 1995) without its state. Source s, of weight
w_s rows in a step of w, "happens" at the times at which w_s x passes j + 1/2 (x in steps); a blend is all
events in order of time, ties in the order of the sources. With whole weights the times of a step lie
strictly inside it, so every step has exactly w_s rows of source s and the order within a step repeats:

    weights 3, 1      source 0 at 1/6 3/6 5/6, source 1 at 1/2      step: 0 0 1 0 | 0 0 1 0 | ...

A schedule gives shares of a step instead, which change from row to row. Then w_s x is the integral of the
share, and a time is rounded up to 2^-16 of a row. Shares are whole numbers of 2^-32 and integrals exact in
128 bits, so every machine puts the rows in the same order.

Row numbers, source counts and their inverse are computed where they are asked for: nothing is sampled,
replayed or stored, and offset 1e12 costs what offset 0 costs. The count of a source is never further from
its exact share than 1 + (w_s / w) S / 2 rows.

A blend that was updated is a sequence of pieces, each holding from its first step on. The arithmetic is
`native/src/blend/mixture.rs`; this file is its face in numpy.
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


class Piece:
    """The mixture over a stretch of steps. Make it with `constant` or `scheduled`."""

    def __init__(self, plan: MixturePlan) -> None:
        self.plan = plan

    @property
    def n_sources(self) -> int:
        """How many sources it knows, those that rest included."""
        return self.plan.n_sources

    @property
    def rows_per_step(self) -> int:
        """Rows a step over all sources."""
        return self.plan.rows_per_step

    @property
    def weights(self) -> tuple[int, ...] | None:
        """Rows a step of each source; None for a schedule."""
        weights = self.plan.weights
        return None if weights is None else tuple(weights)


def constant(weights: Sequence[int]) -> Piece:
    """Fixed whole weights; raises ValueError for negative ones, for none above zero and for too many rows."""
    return Piece(MixturePlan.whole(list(weights)))


def scheduled(kind: ScheduleKind, rows_per_step: int, knots: Sequence[tuple[int, Sequence[int]]]) -> Piece:
    """Shares of a step that change, by knots of (step from the piece's front, shares in units of 1 / WHOLE).

    Before the first knot its shares hold, after the last one those of the last. In between, `stepped` keeps
    those of the knot before, `linear` goes straight from one to the next and `cosine` along half a wave, as
    64 chords. Raises ValueError for knots out of order and for shares that do not sum to WHOLE.
    """
    steps = [step for step, _ in knots]
    shares = np.array([list(shares) for _, shares in knots], dtype=np.int64)
    return Piece(MixturePlan.schedule(kind, rows_per_step, steps, shares.reshape(-1)))


def shares_of(proportions: Sequence[float]) -> tuple[int, ...]:
    """Proportions of any sum as whole numbers that sum to WHOLE, by largest remainders, ties to the first.

    Exact: a float is taken as the fraction it is. Raises ValueError for a negative or infinite number
    and where all are zero.
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
    """The whole blend: pieces and the steps from which they hold, the first from 0; immutable.

    A piece takes the place of those that begin where it does or later.
    """

    def __init__(self, pieces: Sequence[Piece], starts: Sequence[int] = (0,)) -> None:
        self._timeline = MixtureTimeline(list(starts), [piece.plan for piece in pieces])

    @classmethod
    def _of(cls, timeline: MixtureTimeline) -> Mixture:
        made = cls.__new__(cls)
        made._timeline = timeline
        return made

    def extended(self, pieces: Sequence[Piece], starts: Sequence[int]) -> Mixture:
        """This mixture with further pieces, which costs what they cost: the others are shared."""
        return self._of(self._timeline.extended(list(starts), [piece.plan for piece in pieces]))

    @property
    def n_sources(self) -> int:
        """How many sources the last piece knows; those before it know as many or fewer."""
        return self._timeline.n_sources

    @property
    def starts(self) -> tuple[int, ...]:
        """The first step of each piece."""
        return tuple(self._timeline.starts)

    def pieces(self, first: int = 0) -> list[tuple[int, Piece]]:
        """The pieces from number `first` on, with their first steps."""
        return [(start, Piece(plan)) for start, plan in self._timeline.plans(first)]

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
        """First step and rows a step of the first piece of these steps that `ranks` does not divide."""
        return self._timeline.indivisible(offset, stop, ranks)

    def counts(self, rows: Ints) -> Ints:
        """How many of the first `rows[i]` rows of the blend are of each source; shape [len(rows), S]."""
        counts = np.empty((len(rows), self.n_sources), dtype=np.int64)
        self._timeline.counts(rows, counts.reshape(-1))
        return counts

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Source, and index within the source over the whole blend, of each row."""
        source, index = np.empty_like(rows), np.empty_like(rows)
        self._timeline.place(rows, source, index)
        return source, index

    def row_of(self, source: int, index: Ints) -> Ints:
        """The row that is the `index`-th of `source`; -1 where the blend never comes to it."""
        rows = np.empty_like(index)
        self._timeline.row_of(source, index, rows)
        return rows

    def step_of(self, rows: Ints) -> Ints:
        """The step each row belongs to."""
        steps = np.empty_like(rows)
        self._timeline.step_of(rows, steps)
        return steps

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps from the front that need at most `rows` rows of `source`; None when any number does."""
        return self._timeline.steps_within(source, rows)
