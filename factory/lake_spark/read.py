"""Published tables as lazy DataFrames, always at a named snapshot.

An unpinned DataFrame changes under its reader when somebody publishes; `versionAsOf` holds it still. Texts
that lie in registered files are read there, in the order in which the table names them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.lake.files.registered import Texts
from factory.lake.names import TableName
from factory.lake.schemas import TEXT_AT
from factory.settings import CATALOG_NAME


def read_at(spark: SparkSession, table: TableName, snapshot_id: int) -> DataFrame:
    """The rows of `table` at `snapshot_id`."""
    rows = spark.read.option("versionAsOf", snapshot_id).table(f"{CATALOG_NAME}.{table}")
    if TEXT_AT.name not in rows.columns:
        return rows
    # Not deterministic, as far as Spark may know: so it reads texts where it scans, file by file, and not
    # behind a join that has shuffled the rows. Where nobody asks for text, it still leaves this out.
    texts = F.arrow_udf(_texts, "string").asNondeterministic()
    return rows.withColumn("text", F.coalesce("text", texts(TEXT_AT.name))).drop(TEXT_AT.name)


def _texts(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    reader = Texts()
    for places in batches:
        yield from reader.read(places.to_pylist())
