"""Small tables that travel to Spark's workers, as Arrow streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrow_stream(table: DataFrame) -> bytes:
    """Return the rows of a small table as an Arrow stream, in the order of their words and numbers."""
    return arrow_stream_of(table.toArrow())


def arrow_stream_of(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream, in the order of their words and numbers."""
    ordering = [(field.name, "ascending") for field in rows.schema if _is_sortable(field.type)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.sort_by(ordering))
    return sink.getvalue().to_pybytes()


def _is_sortable(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_integer(kind)
