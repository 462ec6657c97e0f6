"""The costs of each shuffle of a source: its score, the pages and bytes per step, and the memory of a window.

Everything is counted, not estimated: the score on the order that would be served (`shuffle_score`), and the
pages in the table's files that hold the rows of whole windows or of single steps. A reader that keeps its
window reads each page once per window; without a window (`row`) it reads a page for every row. Ranks that
read on their own each keep a window and each read the pages they share. Behind one server a shared page is
read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from blender.costs.shuffle_score import epoch_score
from blender.spec.page_order import PageOrder, WindowOrder
from blender.spec.permutation import Permutation
from blender.spec.shuffle import Shuffle, permutation

Ints = npt.NDArray[np.int64]

WINDOWS = (64, 256, 1024, 4096)  # pages; windows larger than the source are left out
LONG = 64  # steps also scored as one batch: neighbouring steps of one window have similar rows
_MEASURED_WINDOWS = 4
_MAX_ROWS = 1 << 17  # rows looked up for one shuffle, unless a single window has more


class Pages(Protocol):
    """The pages of a column in a table's files."""

    def of(self, ordinals: Ints) -> Ints:
        """The number of the page that holds each row; -1 if none does."""

    def n_bytes(self, numbers: Ints) -> Ints:
        """The stored bytes of each page."""


@dataclass(frozen=True)
class SourceFacts:
    """The facts of a source that decide the costs of its shuffles."""

    name: str
    n_rows: int
    row_bytes: float
    """Bytes of a delivered row."""
    page_rows: int
    """Median rows per page of the widest column."""
    rank_of_row: Ints
    """The rank of each of the source's rows in a step."""
    columns: Sequence[Pages]
    """The pages of each column."""

    @property
    def rows_per_step(self) -> int:
        """Rows of the source in a step."""
        return len(self.rank_of_row)


@dataclass(frozen=True)
class ShuffleCost:
    """The score and the costs of one shuffle of a source."""

    source: str
    rows_per_step: int
    """Rows of the source in a step."""
    shuffle: str
    page_rows: int
    window_pages: int
    chosen: bool
    """Whether the blend uses this shuffle."""
    window_rows: int
    """Rows permuted together."""
    score: float
    """The score of the source's rows in one step."""
    long_score: float
    """The score of its rows in LONG steps."""
    pages_per_step: float
    """Mean pages per step of one reader, over all columns."""
    bytes_per_step: float
    """The stored bytes of those pages."""
    bytes_of_ranks: float
    """Stored bytes per step of all ranks together if each reads on its own."""
    window_bytes: float
    """Memory for the delivered rows of a window; 0 without a window."""
    first_pages: int
    """Pages of the first step."""
    first_bytes: int


def candidates(facts: SourceFacts, configured: Shuffle) -> list[Shuffle]:
    """The shuffles to compare: every kind, several window sizes, and the configured one."""
    page_rows = configured.page_rows or facts.page_rows
    n_pages = -(-facts.n_rows // page_rows)
    found = [Shuffle(), Shuffle("page", page_rows)]
    found += [Shuffle("page_window", page_rows, window) for window in WINDOWS if window < n_pages]
    found += [Shuffle("row")]
    if configured not in found:
        index = sum(it.window_pages < configured.window_pages or it.kind == "none" for it in found[:-1])
        found.insert(index, configured)
    return found


def shuffle_cost(facts: SourceFacts, shuffle: Shuffle, seed: int, configured: Shuffle) -> ShuffleCost:
    """The score and the costs of `shuffle`, measured on the first windows of its first epoch."""
    order = permutation(shuffle, facts.n_rows, seed=seed, epoch=0, source=facts.name)
    width = facts.rows_per_step
    ordinals, readings, ranks = _read_together(facts, shuffle, order)
    steps = len(ordinals) / width
    pages = [column.of(ordinals) for column in facts.columns]
    n_pages, n_bytes = _read(facts, pages, readings)
    _, by_ranks = _read(facts, pages, readings * (int(facts.rank_of_row.max()) + 1) + ranks)
    first_pages, first_bytes = _read(facts, [page[:width] for page in pages], np.zeros_like(ordinals[:width]))
    window_rows = _window_rows(shuffle, facts.n_rows)
    return ShuffleCost(
        source=facts.name,
        rows_per_step=width,
        shuffle=shuffle.kind,
        page_rows=shuffle.page_rows,
        window_pages=shuffle.window_pages,
        chosen=shuffle == configured,
        window_rows=window_rows,
        score=epoch_score(order.forward, facts.n_rows, width),
        long_score=epoch_score(order.forward, facts.n_rows, LONG * width),
        pages_per_step=n_pages / steps,
        bytes_per_step=n_bytes / steps,
        bytes_of_ranks=by_ranks / steps,
        window_bytes=0.0 if shuffle.kind in ("none", "row") else window_rows * facts.row_bytes,
        first_pages=first_pages,
        first_bytes=first_bytes,
    )


def _window_rows(shuffle: Shuffle, n_rows: int) -> int:
    if shuffle.kind == "none":
        return 1
    if shuffle.kind == "row":
        return n_rows
    return min(n_rows, shuffle.page_rows * max(1, shuffle.window_pages))


def _read_together(facts: SourceFacts, shuffle: Shuffle, order: Permutation) -> tuple[Ints, Ints, Ints]:
    """Rows from the front of an epoch: their ordinals, the reading each belongs to, and their ranks.

    One reading is a window or a step, and reads each of its pages once.
    """
    width, window_rows = facts.rows_per_step, _window_rows(shuffle, facts.n_rows)
    wanted = LONG * max(width, facts.page_rows)
    if shuffle.kind in ("page", "page_window"):
        wanted = max(window_rows, min(_MAX_ROWS, max(wanted, _MEASURED_WINDOWS * window_rows)))
    positions = np.arange(min(facts.n_rows, wanted))
    if isinstance(order, PageOrder | WindowOrder):
        readings = order.turn(positions)
        if len(positions) < facts.n_rows and readings[-1]:  # the last window is incomplete
            positions = positions[readings < readings[-1]]
            readings = readings[: len(positions)]
    else:
        readings = positions // width if shuffle.kind == "row" else np.zeros_like(positions)
    return order.forward(positions), readings, facts.rank_of_row[positions % width]


def _read(facts: SourceFacts, pages: Sequence[Ints], readings: Ints) -> tuple[int, int]:
    """Pages and bytes over all columns; each reading reads a page once."""
    n_pages = n_bytes = 0
    for column, of_rows in zip(facts.columns, pages, strict=True):
        distinct = np.unique(np.stack([readings, of_rows])[:, of_rows >= 0], axis=1)[1]
        n_pages += len(distinct)
        n_bytes += int(column.n_bytes(distinct).sum())
    return n_pages, n_bytes
