"""Which source every row of a blend comes from, and which of its rows: counts in closed form at any offset.

Event-time merge, which is stride scheduling (Waldspurger, 1995) without its state. Source s, of weight
w_s rows in a step of w, "happens" at the times at which w_s x passes j + 1/2 (x in steps); a blend is all
events in order of time, ties in the order of the sources. With whole weights the times of a step lie
strictly inside it, so every step has exactly w_s rows of source s and the order within a step repeats:

    weights 3, 1      source 0 at 1/6 3/6 5/6, source 1 at 1/2      step: 0 0 1 0 | 0 0 1 0 | ...

Row numbers, source counts and their inverse are then divisions on int64: nothing is sampled, replayed or
stored, and offset 1e12 costs what offset 0 costs. Within a step the count of a source is never further
from its exact share than 1 + (w_s / w) S / 2 rows.

A blend that was updated is a sequence of pieces, each holding from its first step on. A piece answers
for rows counted from its own front (`counts`, `place`, `row_of`), so a schedule is another kind of piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MAX_ROWS_PER_STEP = 1 << 20  # up to here the times of two events can be compared exactly in 64 bits
MAX_OFFSET = 1 << 42  # 4.4e12 steps; times MAX_ROWS_PER_STEP it still fits 64 bits
_TIME_BITS = 42


class Piece(Protocol):
    """The mixture over a stretch of steps; rows and counts are relative to its front."""

    @property
    def weights(self) -> Ints:
        """Rows a step of each source, for a reader; shape [S]."""

    @property
    def rows_per_step(self) -> int:
        """Rows a step over all sources."""

    def counts(self, rows: Ints) -> Ints:
        """How many of the first `rows[i]` rows are of each source; shape [len(rows), S]."""

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Source and index within the source of each row."""

    def row_of(self, source: int, index: Ints) -> Ints:
        """The row that is the `index`-th of `source`: the inverse of `place`."""

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps that need at most `rows` rows of `source`; None when any number does."""


@dataclass(frozen=True)
class _Pattern:
    """The order of events within a step of fixed weights."""

    source: Ints  # of each row of the step
    index: Ints  # of each row among the rows of its source in the step
    first: Ints  # of each source: where its events begin in `place`
    place: Ints  # of the j-th event of source s, at first[s] + j: its row in the step


@lru_cache(maxsize=256)  # a blend updated ten thousand times keeps its weights, not their patterns
def _pattern(weights: tuple[int, ...]) -> _Pattern:
    per_source = np.asarray(weights, dtype=np.int64)
    first = np.cumsum(per_source) - per_source
    source = np.repeat(np.arange(len(weights)), per_source)
    index = np.arange(len(source)) - first[source]
    # (2j+1) / 2w_s in fixed point. Two different times are at least 1 / (2 w_s w_t) >= 2^-41 apart, so
    # their floors at 42 bits differ and stand in the same order; equal times have equal floors.
    time = ((2 * index + 1) << _TIME_BITS) // (2 * per_source[source])
    order = np.lexsort((source, time))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _Pattern(source[order], index[order], first, place)


class ConstantPiece:
    """Fixed whole weights; raises ValueError for negative ones, for none above zero and for too many rows."""

    def __init__(self, weights: Sequence[int]) -> None:
        if any(weight < 0 for weight in weights):
            raise ValueError(f"Weights {list(weights)} hold a negative number. Use zero or more rows a step.")
        if not 0 < sum(weights) <= MAX_ROWS_PER_STEP:
            raise ValueError(
                f"Weights {list(weights)} sum to {sum(weights)} rows a step. "
                f"Use at least 1 and at most {MAX_ROWS_PER_STEP:,}."
            )
        self.weights: Ints = np.asarray(weights, dtype=np.int64)
        self.rows_per_step = sum(weights)

    @property
    def _pattern(self) -> _Pattern:
        return _pattern(tuple(self.weights.tolist()))

    def counts(self, rows: Ints) -> Ints:
        """How many of the first `rows[i]` rows are of each source; shape [len(rows), S]."""
        steps, rest = np.divmod(rows, self.rows_per_step)
        counts = steps[:, None] * self.weights
        if rest.any():  # else at the front of a step, where no pattern is needed
            pattern = self._pattern
            for source, (first, weight) in enumerate(zip(pattern.first, self.weights, strict=True)):
                counts[:, source] += np.searchsorted(pattern.place[first : first + weight], rest)
        return counts

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Source and index within the source of each row."""
        steps, rest = np.divmod(rows, self.rows_per_step)
        source = self._pattern.source[rest]
        return source, steps * self.weights[source] + self._pattern.index[rest]

    def row_of(self, source: int, index: Ints) -> Ints:
        """The row that is the `index`-th of `source`, which must have a weight above zero."""
        steps, rest = np.divmod(index, self.weights[source])
        return steps * self.rows_per_step + self._pattern.place[self._pattern.first[source] + rest]

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps that need at most `rows` rows of `source`; None when any number does."""
        weight = int(self.weights[source])
        return rows // weight if weight else None


class Mixture:
    """The whole blend: pieces and the steps from which they hold (the first is 0, strictly ascending)."""

    def __init__(self, pieces: Sequence[Piece], starts: Sequence[int] = (0,)) -> None:
        assert len(pieces) == len(starts)
        assert starts[0] == 0
        assert all(a < b for a, b in pairwise(starts)), starts
        self.pieces = tuple(pieces)
        self.starts: Ints = np.asarray(starts, dtype=np.int64)
        self.n_sources = len(pieces[0].weights)
        self._rows = np.zeros(len(pieces), dtype=np.int64)  # rows before each piece
        self._counts = np.zeros((len(pieces), self.n_sources), dtype=np.int64)
        for number, piece in enumerate(self.pieces[:-1]):
            length = (self.starts[number + 1] - self.starts[number]) * piece.rows_per_step
            self._rows[number + 1] = self._rows[number] + length
            self._counts[number + 1] = self._counts[number] + piece.counts(np.array([length]))[0]

    def rows_per_step(self, step: int) -> int:
        """Rows of one step."""
        return self.pieces[self._piece_of_step(step)].rows_per_step

    def first_row(self, step: int) -> int:
        """Rows of all steps before `step`."""
        number = self._piece_of_step(step)
        return int(self._rows[number]) + (step - int(self.starts[number])) * self.pieces[number].rows_per_step

    def piece_end(self, step: int) -> int:
        """The step at which the piece that holds `step` ends; MAX_OFFSET for the last."""
        number = self._piece_of_step(step)
        return int(self.starts[number + 1]) if number + 1 < len(self.pieces) else MAX_OFFSET

    def counts(self, rows: Ints) -> Ints:
        """How many of the first `rows[i]` rows of the blend are of each source; shape [len(rows), S]."""
        counts = np.empty((len(rows), self.n_sources), dtype=np.int64)
        for number, chosen in self._by_piece(rows):
            counts[chosen] = self._counts[number] + self.pieces[number].counts(
                rows[chosen] - self._rows[number]
            )
        return counts

    def place(self, rows: Ints) -> tuple[Ints, Ints]:
        """Source, and index within the source over the whole blend, of each row."""
        source, index = np.empty_like(rows), np.empty_like(rows)
        for number, chosen in self._by_piece(rows):
            within, relative = self.pieces[number].place(rows[chosen] - self._rows[number])
            source[chosen], index[chosen] = within, relative + self._counts[number][within]
        return source, index

    def row_of(self, source: int, index: Ints) -> Ints:
        """The row that is the `index`-th of `source`; -1 where the blend never comes to it."""
        before = self._counts[:, source]
        # Several pieces begin at the same count where the source rests: the last of them goes on.
        numbers = np.searchsorted(before, index, side="right") - 1
        rows = np.full_like(index, -1)
        for number in np.unique(numbers):
            piece = self.pieces[number]
            if piece.weights[source] > 0:
                chosen = numbers == number
                rows[chosen] = self._rows[number] + piece.row_of(source, index[chosen] - before[number])
        return rows

    def step_of(self, rows: Ints) -> Ints:
        """The step each row belongs to."""
        steps = np.empty_like(rows)
        for number, chosen in self._by_piece(rows):
            steps[chosen] = (
                self.starts[number] + (rows[chosen] - self._rows[number]) // self.pieces[number].rows_per_step
            )
        return steps

    def steps_within(self, source: int, rows: int) -> int | None:
        """Whole steps from the front that need at most `rows` rows of `source`; None when any number does."""
        for number, piece in enumerate(self.pieces):
            steps = piece.steps_within(source, rows - int(self._counts[number][source]))
            if steps is None:
                continue
            end = int(self.starts[number]) + steps
            if number + 1 == len(self.pieces) or end < self.starts[number + 1]:
                return end
        return None

    def _piece_of_step(self, step: int) -> int:
        return int(np.searchsorted(self.starts, step, side="right")) - 1

    def _by_piece(self, rows: Ints) -> list[tuple[int, npt.NDArray[np.bool_] | slice]]:
        if len(self.pieces) == 1:
            return [(0, slice(None))]
        numbers = np.searchsorted(self._rows, rows, side="right") - 1
        return [(int(number), numbers == number) for number in np.unique(numbers)]
