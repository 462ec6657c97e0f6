"""The rows of a snapshot: small tables are read in this process, large ones by Spark.

A Spark job has a fixed cost even for a few rows, and a pipeline has dozens of small tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from factory.lake.files.scan import stored
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.tables import Lake, published_at
from factory.lake_spark.read import read_at

# Limits for reading a table locally: compared columns are held in memory, whole rows are not.
MAX_ROWS, MAX_BYTES = 4_000_000, 1 << 30


@dataclass(frozen=True)
class Rows:
    """The rows of one snapshot, readable in two ways.

    `frame()` returns all columns as a Spark DataFrame. `read_locally(columns)` yields Arrow batches, or
    returns None for a table above the limits. `n_bytes` is the size of the compressed files, without
    registered texts.
    """

    frame: Callable[[], DataFrame]
    read_locally: Callable[[Sequence[str]], Iterator[pa.RecordBatch] | None]
    n_bytes: int


def rows_at(spark: SparkSession, lake: Lake, table: TableName, snapshot_id: int, schema: TableSchema) -> Rows:
    """Return the rows of `table` at `snapshot_id`; `schema` declares the columns."""
    loaded = lake.table(table)
    published = published_at(table, loaded, snapshot_id)

    def read_locally(columns: Sequence[str]) -> Iterator[pa.RecordBatch] | None:
        if published.rows > MAX_ROWS or published.size_bytes > MAX_BYTES:
            return None
        asked = pa.schema([schema.columns.field(name) for name in columns])
        return stored(loaded, snapshot_id, asked)

    return Rows(lambda: read_at(spark, table, snapshot_id), read_locally, published.size_bytes)
