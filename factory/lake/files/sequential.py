"""Columns of a Parquet file, read forwards at ascending rows in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

_BATCH_ROWS, _BATCH_BYTES = 1024, 8 << 20  # read at once


class ForwardReader:
    """Some columns of a file, read forwards; going back restarts the row group."""

    def __init__(self, parquet: pq.ParquetFile, columns: Sequence[str]) -> None:
        self._parquet, self._columns = parquet, list(columns)
        facts = parquet.metadata
        groups = [facts.row_group(number) for number in range(facts.num_row_groups)]
        self._ends = list(accumulate(group.num_rows for group in groups))
        self._group, self._first, self._end = -1, 0, 0
        self._held = pa.RecordBatch.from_pylist([])
        self._batches: Iterator[pa.RecordBatch] = iter(())

    def take(self, rows: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Yield the values at ascending `rows` in batches of bounded size."""
        at = 0
        while at < len(rows):
            self._advance(rows[at])
            upto = bisect_left(rows, self._end, lo=at)
            yield self._held.take(pa.array([row - self._first for row in rows[at:upto]], pa.int64()))
            at = upto

    def _advance(self, row: int) -> None:
        """Read forwards to the batch that contains `row`."""
        group = bisect_right(self._ends, row)
        if group != self._group or row < self._first:
            facts = self._parquet.metadata.row_group(group)
            row_bytes = max(1, facts.total_byte_size // max(1, facts.num_rows))
            size = max(1, min(_BATCH_ROWS, _BATCH_BYTES // row_bytes))
            self._batches = self._parquet.iter_batches(
                size, row_groups=[group], columns=self._columns, use_threads=False
            )
            self._group, self._end = group, self._ends[group] - facts.num_rows
            self._first = self._end
        while row >= self._end:
            following = next(self._batches, None)
            if following is None:
                raise pa.ArrowInvalid(f"row group {group} ends before its row {row - self._first}")
            self._held = without_views(following)
            self._first, self._end = self._end, self._end + self._held.num_rows


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without views, which `take` does not know."""
    return batch.cast(pa.schema([field.with_type(_viewless(field.type)) for field in batch.schema]))


def _viewless(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(_viewless(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_viewless(field.type)) for field in kind])
    return kind
