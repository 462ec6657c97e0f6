"""Values read from the files in which they lie, in Spark's Python workers.

A text that Spark reads itself is copied from column to row to Arrow to a socket before a worker has it. A
worker that is told the file and the row of it reads the column alone, ten times as cheaply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake.files.fetch import LocatedRows, LocatedTexts
from factory.lake.files.random_access import ScatteredRows
from spark_udfs.hstack import beside

Batches = Iterable[pa.RecordBatch]
Function = Callable[[Batches], Iterator[pa.RecordBatch]]
ReadColumn = Callable[[pa.RecordBatch], pa.Array]
Scattered = Callable[[Batches, ReadColumn], Iterator[pa.RecordBatch]]
Read = Callable[[str, Sequence[int]], Iterable[pa.RecordBatch]]


def over_texts(batches: Batches, storage: Mapping[str, str], function: Function) -> Iterator[pa.RecordBatch]:
    """What `function` makes of the rows (file, row, ...) with `text` in place of these two, last.

    `storage` opens files that are not local (`factory.lake.files.fetch`).
    """
    return function(with_values(batches, LocatedTexts(storage).read))


def over_columns(
    batches: Batches, storage: Mapping[str, str], columns: Sequence[str], function: Function
) -> Iterator[pa.RecordBatch]:
    """What `function` makes of the rows (file, row, ...) with `columns` in place of these two, last."""
    return function(with_values(batches, LocatedRows(storage, columns).read))


def over_scattered(
    batches: Batches, storage: Mapping[str, str], column: str, kind: pa.DataType, function: Scattered
) -> Iterator[pa.RecordBatch]:
    """What `function` makes of the batches, given what reads `column`, of type `kind`, for some rows of one.

    The rows are (file, row, ...) in any order; the value is null where `file` is.
    """
    scattered = ScatteredRows(storage, column, kind)
    return function(batches, lambda rows: scattered.read(rows["file"], rows["row"]))


def with_values(batches: Batches, read: Read) -> Iterator[pa.RecordBatch]:
    """The rows (file, row, ...) with what `read` gives in place of these two, in batches of bounded size.

    Rows in the order of file and row cost one pass over the columns of each file.
    """
    for batch in batches:
        others = batch.drop_columns(["file", "row"])
        ends = pc.run_end_encode(batch["file"]).run_ends.to_pylist() if batch.num_rows else []
        for begin, end in zip([0, *ends], ends, strict=False):
            at = begin
            for values in read(batch["file"][begin].as_py(), batch["row"][begin:end].to_pylist()):
                yield beside(others.slice(at, values.num_rows), values)
                at += values.num_rows
