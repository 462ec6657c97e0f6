"""Batches of an epoch in the order of Youmu's aggressive buffer shuffle (its Algorithm 2), page by page.

    pages = shuffle_index(matrix, seed=7)                           # pages in random order
    batches = BufferShuffle(pages, batch_rows=8, buffer_rows=10_000, seed=7)
    for tokens in batches:                                          # pyarrow.Array of 8 rows
        state = batches.state()                                     # where to go on from here

After "Youmu: efficient columnar data pipeline for LLM training" (Zhong et al., 2025). A buffer takes the next
page as soon as it has room for all its rows, and then shuffles all of its rows; batches are popped from its
front. Every page is read once and every row comes once. The buffer holds at most `buffer_rows` rows, unless a
page does not fit while too few rows are left for a batch.

    buffer of 6          page of 3 came: shuffle        pop 2         room for 3: page, shuffle ...
    . . . . . .          c a b . . .   (a b c)          b . . .       e b f d . .

A new shuffle undoes all earlier ones, so one permutation per arrival of pages is enough, keyed by (seed,
epoch, number of the arrival), and only the popped positions are computed. As printed, Algorithm 2 pops its
first batches before any shuffle; here they are shuffled, as in the paper's text and code listing.

Unlike `blender.spec.shuffle`, this order has no closed form. The k-th row depends on all earlier arrivals, so
there is no fetch by offset and no inverse. A state, which the paper does not mention, is valid only for the
same pages and the same number of readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.errors import InvalidRequest
from blender.parquet.matrix import PageList
from blender.spec.permutation import keyed
from blender.spec.shuffle import derive_key

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BufferState:
    """The state of an epoch: three numbers and the rows in the buffer."""

    pages: int = 0
    """Pages taken so far."""
    arrivals: int = 0
    """Arrivals of pages so far."""
    popped: int = 0
    """Rows popped since the last arrival."""
    rows: tuple[int, ...] = ()
    """Row numbers in the buffer at the last arrival, popped ones included."""


class BufferOrder:
    """The order without the reads: an iterator over (pages taken, row numbers of the batch)."""

    def __init__(
        self,
        pages: Sequence[range],
        *,
        batch_rows: int,
        buffer_rows: int,
        seed: int = 0,
        epoch: int = 0,
        state: BufferState | None = None,
    ) -> None:
        """`pages` has the row numbers of each page, in the order of reading.

        Raises InvalidRequest for an empty batch, a batch larger than the buffer, and a state with more pages
        than `pages`.
        """
        if not 0 < batch_rows <= buffer_rows:
            raise InvalidRequest(
                f"Batches of {batch_rows:,} rows were asked for from a buffer of {buffer_rows:,}. "
                "Use at least 1 row and at most as many as the buffer holds."
            )
        state = state or BufferState()
        if state.pages > len(pages):
            raise InvalidRequest(
                f"The state has taken {state.pages:,} pages, and there are {len(pages):,}. "
                "Give the pages it was made with."
            )
        self._pages, self._batch_rows, self._buffer_rows = pages, batch_rows, buffer_rows
        self._seed, self._epoch = seed, epoch
        self._state = replace(state, rows=())
        self._rows: Ints = np.array(state.rows, dtype=np.int64)

    def __iter__(self) -> Iterator[tuple[range, Ints]]:
        return self

    def __next__(self) -> tuple[range, Ints]:
        taken = self._refill()
        popped = self._state.popped
        if popped == len(self._rows):
            raise StopIteration
        end = min(popped + self._batch_rows, len(self._rows))
        self._state = replace(self._state, popped=end)
        return taken, self._rows[self._positions(popped, end)]

    def state(self) -> BufferState:
        """The state that lets a new order of the same pages continue after the last batch."""
        return replace(self._state, rows=tuple(self._rows.tolist()))

    def waiting(self) -> Ints:
        """The rows now in the buffer, in the order of arrival."""
        popped = self._positions(0, self._state.popped)
        return np.delete(self._rows, popped)

    def _refill(self) -> range:
        """Take pages while the buffer has room for their rows; return their numbers."""
        first = end = self._state.pages
        held = len(self._rows) - self._state.popped
        arrived = []
        while end < len(self._pages) and (
            held < self._batch_rows or held + len(self._pages[end]) <= self._buffer_rows
        ):
            arrived.append(np.array(self._pages[end], dtype=np.int64))
            held += len(self._pages[end])
            end += 1
        if arrived:
            self._rows = np.concatenate([self.waiting(), *arrived])
            self._state = BufferState(end, self._state.arrivals + 1)
        return range(first, end)

    def _positions(self, begin: int, end: int) -> Ints:
        """The buffer positions of the rows popped as number `begin` to `end` since the arrival."""
        level = f"buffer {self._state.arrivals}"
        key = derive_key(seed=self._seed, epoch=self._epoch, level=level, source="")
        return keyed(len(self._rows), key).forward(np.arange(begin, end))


class BufferShuffle:
    """An iterator over the rows of an epoch: arrays of `batch_rows` rows; the last may be shorter."""

    def __init__(
        self,
        pages: PageList,
        *,
        batch_rows: int,
        buffer_rows: int,
        seed: int = 0,
        epoch: int = 0,
        state: BufferState | None = None,
    ) -> None:
        """Pages as `shuffle_index` gives them, or a slice for one of several readers: `[reader::readers]`.

        With a `state` the pages of the rows in its buffer are read once more. Raises InvalidRequest as
        `BufferOrder`, and what reading pages raises.
        """
        self._pages = pages
        self._order = BufferOrder(
            _Rows(pages), batch_rows=batch_rows, buffer_rows=buffer_rows, seed=seed, epoch=epoch, state=state
        )
        self._held: dict[int, Any] = {}
        waiting = set(self._order.waiting().tolist())
        again = sorted({pages.matrix.page_of_row(row).number for row in waiting})
        self._read(np.array(again, dtype=np.int64))
        self._held = {row: self._held[row] for row in waiting}

    def __iter__(self) -> Iterator[pa.Array]:
        return self

    def __next__(self) -> pa.Array:
        taken, rows = next(self._order)
        if taken:
            self._read(self._pages[taken.start : taken.stop].numbers())
        return pa.array([self._held.pop(row) for row in rows.tolist()], type=self._pages.matrix.type)

    def state(self) -> BufferState:
        """The state after the last batch, without the shuffle's arguments."""
        return self._order.state()

    def _read(self, numbers: Ints) -> None:
        matrix = self._pages.matrix
        for number, array in zip(numbers.tolist(), matrix.read_pages(numbers), strict=True):
            first = matrix.native.page(number)[3]
            self._held.update(zip(range(first, first + len(array)), array.to_pylist(), strict=True))


class _Rows(Sequence[range]):
    """The row numbers of each page of a list, computed on access."""

    def __init__(self, pages: PageList) -> None:
        self._pages = pages

    def __len__(self) -> int:
        return len(self._pages)

    @overload
    def __getitem__(self, index: int) -> range: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[range]: ...
    def __getitem__(self, index: int | slice) -> range | Sequence[range]:
        if isinstance(index, slice):
            return _Rows(self._pages[index])
        page = self._pages[index]
        first, n_rows = page.matrix.native.page(page.number)[3:]
        return range(first, first + n_rows)
