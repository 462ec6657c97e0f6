"""The rows of a snapshot: read here where they are few, asked of Spark where they are not.

A Spark job has a cost of its own however few the rows are, and a line has dozens of small tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from factory.lake.files.scan import stored
from factory.lake.names import TableName
from factory.lake.schemas import TableSchema
from factory.lake.tables import Lake
from factory.lake_spark.read import read_at

# Of a table that is read here: what a check or a chart compares is held at once, the rows are not.
MOST_ROWS, MOST_BYTES = 4_000_000, 1 << 30


@dataclass(frozen=True)
class Rows:
    """The same rows twice: `frame()` has them in Spark; `here(columns)` reads some, where they are few.

    The compressed files have `n_bytes`, which do not count registered texts.
    """

    frame: Callable[[], DataFrame]
    here: Callable[[Sequence[str]], Iterator[pa.RecordBatch] | None]
    n_bytes: int


def rows_at(spark: SparkSession, lake: Lake, table: TableName, snapshot_id: int, schema: TableSchema) -> Rows:
    """The rows of `table` at `snapshot_id`, whose columns `schema` declares."""
    published = lake.published_at(table, snapshot_id)

    def here(columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        if published.rows > MOST_ROWS or published.size_bytes > MOST_BYTES:
            return None
        asked = pa.schema([schema.columns.field(name) for name in columns])
        return stored(lake.table(table), snapshot_id, asked)

    return Rows(lambda: read_at(spark, table, snapshot_id), here, published.size_bytes)
