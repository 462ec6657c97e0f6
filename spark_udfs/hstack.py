"""Record batches joined column by column."""

from __future__ import annotations

import pyarrow as pa


def hstack(rows: pa.RecordBatch, values: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of `rows`, then of `values`; both have the same number of rows."""
    return pa.RecordBatch.from_arrays(
        [*rows.columns, *values.columns], schema=pa.schema([*rows.schema, *values.schema])
    )
