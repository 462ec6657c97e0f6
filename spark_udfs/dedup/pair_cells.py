"""Where pairs of documents are compared, in Spark's Python workers (`native/src/dedup/pair_cells.rs`).

Spark joins of the pairs with their ends would name cells too, with a row per pair and end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from factory import _native
from spark_udfs.regroup import whole_parts

_HELD = 1 << 20  # records, or pairs and ends of cells, held at once: up to 32 bytes each


class _Holder(Protocol):
    def __len__(self) -> int: ...
    def add(self, batch: pa.RecordBatch) -> None: ...
    def drain(self) -> pa.RecordBatch: ...


def ends(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the pairs (document, other): both ends of each pair."""
    return _drained(_native.PairEnds(), batches)


def neighbours(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) from `ends` sorted by part: what each document announces to its neighbours."""
    return _drained(_native.Neighbours(), whole_parts(batches))


def cells(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(cell, document, others) of the rows of `neighbours`, sorted by part."""
    return _drained(_native.PairCells(), whole_parts(batches))


def _drained(holder: _Holder, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        holder.add(batch)
        if len(holder) > _HELD:
            yield holder.drain()
    yield holder.drain()
