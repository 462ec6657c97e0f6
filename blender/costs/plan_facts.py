"""The facts about a blend that `blender.costs.plan` needs: rows, ranks and pages of each source."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from blender.costs.plan import ShuffleCost, SourceFacts, candidates, shuffle_cost
from blender.opened.blend import Blend
from blender.opened.source import OpenedSource
from blender.rows.snapshot_reader import SnapshotReader
from blender.spec.ranks import RankSlice
from blender.spec.source import shuffle_of

Ints = npt.NDArray[np.int64]

_SAMPLED = 32  # rows and pages sampled for their usual size


class LeafPages:
    """The pages of one leaf of a table, numbered over all its indexes."""

    def __init__(self, reader: SnapshotReader, leaf: str) -> None:
        self._reader = reader
        reader.column(leaf)
        reader.mend(leaf)
        self._column = reader.column(leaf)
        self._indexes = [group.index for group in self._column.groups]
        self._first = np.cumsum([0, *(index.n_pages for index in self._indexes)])

    def of(self, ordinals: Ints) -> Ints:
        """The number of the page that holds each row; -1 if the row's file lacks the leaf."""
        distinct, which = np.unique(ordinals, return_inverse=True)
        found = np.full(len(distinct), -1, dtype=np.int64)
        first = {id(index): begin for index, begin in zip(self._indexes, self._first.tolist(), strict=False)}
        rows = self._reader.rows(distinct)
        for index, of_index, positions in self._column.parts(rows, np.arange(len(distinct))):
            found[positions] = [first[id(index)] + index.page_of_row(row) for row in of_index.tolist()]
        return found[which]

    def n_bytes(self, numbers: Ints) -> Ints:
        """The stored bytes of each page."""
        of = np.searchsorted(self._first, numbers, side="right") - 1
        sizes = []
        for number, index in zip(numbers.tolist(), of.tolist(), strict=True):
            if number < 0:
                sizes.append(0)
                continue
            begin, end = self._indexes[index].byte_ranges(number - int(self._first[index]))[0]
            sizes.append(end - begin)
        return np.array(sizes, dtype=np.int64)

    def usual_rows(self) -> int:
        """Median rows of the first pages."""
        index = self._indexes[0]
        return int(np.median([index.page(number)[4] for number in range(min(_SAMPLED, index.n_pages))]))


def plan(blend: Blend, offset: int = 0, ranks: int = 1) -> list[ShuffleCost]:
    """The costs of every shuffle of every source with rows in step `offset`, read by `ranks` ranks.

    Raises InvalidRequest if `ranks` does not divide the step, EndOfData beyond the last step, and the errors
    of reading pages.
    """
    blend.step(offset, RankSlice(0, ranks))  # serving the step raises whatever is wrong with the request
    origins = blend.order.origins(blend.order.row_numbers(offset))
    rank = np.arange(len(origins.source)) // (len(origins.source) // ranks)
    found: list[ShuffleCost] = []
    for number, rows in origins.by_source():
        facts = _facts(blend.sources[number], rank[rows])
        configured = shuffle_of(blend.sources[number].config)
        shuffles = candidates(facts, configured)
        found += [shuffle_cost(facts, shuffle, blend.config.seed, configured) for shuffle in shuffles]
    return found


def _facts(source: OpenedSource, rank_of_row: Ints) -> SourceFacts:
    reader, columns = source.reader, source.config.columns
    sampled = np.arange(min(_SAMPLED, reader.n_rows))
    pages = [LeafPages(reader, leaf) for leaf in reader.leaves(columns)]
    widest = max(pages, key=lambda it: it.n_bytes(it.of(sampled)).sum())
    return SourceFacts(
        name=source.config.name,
        n_rows=reader.n_rows,
        row_bytes=reader.read(sampled, columns).nbytes / len(sampled),
        page_rows=widest.usual_rows(),
        rank_of_row=rank_of_row,
        columns=pages,
    )
