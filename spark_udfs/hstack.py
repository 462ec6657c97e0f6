"""Columns side by side."""

from __future__ import annotations

import pyarrow as pa


def beside(rows: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of both, which have equally many rows."""
    return pa.RecordBatch.from_arrays(
        [*rows.columns, *values.columns], schema=pa.schema([*rows.schema, *values.schema])
    )
