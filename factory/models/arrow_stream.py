"""Small tables that travel to Spark's workers, as Arrow streams."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame


def arrow_stream(table: DataFrame) -> bytes:
    """Return the rows of a small table as an Arrow stream, in the order of their columns' values."""
    rows = table.toArrow()
    in_order = rows.sort_by([(name, "ascending") for name in rows.column_names if _sortable(rows, name)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(in_order)
    return sink.getvalue().to_pybytes()


def _sortable(rows: pa.Table, name: str) -> bool:
    kind = rows.schema.field(name).type
    return pa.types.is_string(kind) or pa.types.is_integer(kind)
