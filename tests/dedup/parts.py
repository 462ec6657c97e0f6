"""Records by part, as Spark passes them from one function of a stage to the next."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

SCHEMA = pa.schema([("part", pa.int32()), ("records", pa.binary())])


def sorted_by_part(tasks: Iterable[Iterable[pa.RecordBatch]]) -> list[pa.RecordBatch]:
    """The rows of several tasks, sorted, in batches of two."""
    rows = [row for task in tasks for batch in task for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["part"])
    return [pa.RecordBatch.from_pylist(rows[at : at + 2], SCHEMA) for at in range(0, len(rows), 2)]
