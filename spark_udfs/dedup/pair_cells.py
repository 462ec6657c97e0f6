"""Cells in which pairs are compared, in Spark's Python workers (`native/src/dedup/pairs/pair_cells.rs`).

Spark joins of the pairs with their ends would name cells too, with a row per pair and end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.regroup import drained, whole_parts


def ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the pairs (document, other): both ends of each pair."""
    parts = _native.RecordParts()
    return drained(parts, parts.add_pairs, batches)


def neighbours(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) from `ends` sorted by part: the announcements of each document to its neighbours."""
    parts = _native.RecordParts()
    return drained(parts, parts.add_neighbours, whole_parts(batches))


def cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(cell, document, others) of the rows of `neighbours`, sorted by part."""
    pair_cells = _native.PairCells()
    return drained(pair_cells, pair_cells.add, whole_parts(batches))
