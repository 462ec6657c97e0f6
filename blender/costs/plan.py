"""What each shuffle of a source costs and gives: its score, what a step reads, and the memory it wants.

Nothing here is a formula alone: the score is counted on the order that would be served (`shuffle_score`), and
pages are those of the table's files that the rows of whole windows, or of single steps, lie in. A reader that
keeps its window reads a page once for the window; without one (`row`) it reads a page for every row. Ranks
that read by themselves each keep a window, and a page whose rows go to several ranks is read by each of them;
behind one server it is read once.
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

WINDOWS = (64, 256, 1024, 4096)  # pages, as far as a source has more
LONG = 64  # steps that are also scored as one batch: neighbouring steps of one window are alike
_WINDOWS_LOOKED_AT = 4
_MAX_ROWS = 1 << 17  # whose pages are looked up for a choice, but for one window at least


class Pages(Protocol):
    """Where the rows of a column lie in a table's files."""

    def of(self, ordinals: Ints) -> Ints:
        """The number of the page that holds each row; -1 where none does."""

    def n_bytes(self, numbers: Ints) -> Ints:
        """The bytes of each page as it lies in its file."""


@dataclass(frozen=True)
class SourceFacts:
    """What of a source decides what its shuffles cost."""

    name: str
    n_rows: int
    row_bytes: float
    """Of a row as it is delivered."""
    page_rows: int
    """Rows of a usual page of the widest column."""
    rank_of_row: Ints
    """Of each of the source's rows in a step: the rank that it goes to."""
    columns: Sequence[Pages]
    """Of each column that is read."""

    @property
    def rows_per_step(self) -> int:
        """Rows of the source in a step."""
        return len(self.rank_of_row)


@dataclass(frozen=True)
class ShuffleCost:
    """A shuffle of a source: what it gives and what it costs."""

    source: str
    rows_per_step: int
    """Of the source."""
    shuffle: str
    page_rows: int
    window_pages: int
    chosen: bool
    """Whether the blend has this shuffle."""
    window_rows: int
    """Rows that are permuted together."""
    score: float
    """Of the source's rows in a step."""
    long_score: float
    """Of those in LONG steps."""
    pages_per_step: float
    """Pages that one reader reads for a step, on average, all columns together."""
    bytes_per_step: float
    """Their bytes as they lie in the files."""
    bytes_of_ranks: float
    """What all ranks read for a step when each reads by itself."""
    window_bytes: float
    """Memory for the rows of a window as they are delivered; 0 where none is kept."""
    first_pages: int
    """Pages that the first step reads."""
    first_bytes: int


def candidates(facts: SourceFacts, configured: Shuffle) -> list[Shuffle]:
    """The shuffles to compare: every kind, with several windows, and the one that is configured."""
    page_rows = configured.page_rows or facts.page_rows
    n_pages = -(-facts.n_rows // page_rows)
    found = [Shuffle(), Shuffle("page", page_rows)]
    found += [Shuffle("page_window", page_rows, window) for window in WINDOWS if window < n_pages]
    found += [Shuffle("row")]
    if configured not in found:
        place = sum(it.window_pages < configured.window_pages or it.kind == "none" for it in found[:-1])
        found.insert(place, configured)
    return found


def shuffle_cost(facts: SourceFacts, shuffle: Shuffle, seed: int, configured: Shuffle) -> ShuffleCost:
    """What `shuffle` gives and costs, on the first windows of its first epoch."""
    order = permutation(shuffle, facts.n_rows, seed=seed, epoch=0, source=facts.name)
    width = facts.rows_per_step
    ordinals, readings, ranks = _read_together(facts, shuffle, order)
    steps = len(ordinals) / width
    pages = [column.of(ordinals) for column in facts.columns]
    n_pages, n_bytes = _read(facts, pages, readings)
    _, by_ranks = _read(facts, pages, readings * (int(facts.rank_of_row.max()) + 1) + ranks)
    first_pages, first_bytes = _read(facts, [it[:width] for it in pages], np.zeros_like(ordinals[:width]))
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
    """Rows from the front of an epoch: their ordinals, which of them are read together, and their ranks.

    A page is read once for the rows that are read together: those of a window, or of a step.
    """
    width, window_rows = facts.rows_per_step, _window_rows(shuffle, facts.n_rows)
    wanted = LONG * max(width, facts.page_rows)
    if shuffle.kind in ("page", "page_window"):
        wanted = max(window_rows, min(_MAX_ROWS, max(wanted, _WINDOWS_LOOKED_AT * window_rows)))
    positions = np.arange(min(facts.n_rows, wanted))
    if isinstance(order, PageOrder | WindowOrder):
        readings = order.turn(positions)
        if len(positions) < facts.n_rows and readings[-1]:  # the last one is cut
            positions = positions[readings < readings[-1]]
            readings = readings[: len(positions)]
    else:
        readings = positions // width if shuffle.kind == "row" else np.zeros_like(positions)
    return order.forward(positions), readings, facts.rank_of_row[positions % width]


def _read(facts: SourceFacts, pages: Sequence[Ints], readings: Ints) -> tuple[int, int]:
    """Pages and bytes of all columns, where each reading takes the pages of its rows once."""
    n_pages = n_bytes = 0
    for column, of_rows in zip(facts.columns, pages, strict=True):
        distinct = np.unique(np.stack([readings, of_rows])[:, of_rows >= 0], axis=1)[1]
        n_pages += len(distinct)
        n_bytes += int(column.n_bytes(distinct).sum())
    return n_pages, n_bytes
