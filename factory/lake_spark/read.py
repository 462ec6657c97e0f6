"""Published tables as lazy DataFrames, always at a given snapshot.

An unpinned DataFrame changes when somebody publishes; `versionAsOf` pins it. Texts of registered files are
read there, in the order of the table's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.lake.files.registered import RegisteredTexts
from factory.lake.names import TableName
from factory.lake.schemas.ingest import TEXT_AT
from factory.lake_spark.storage import storage_of
from factory.settings import CATALOG_NAME


def read_at(spark: SparkSession, table: TableName, snapshot_id: int) -> DataFrame:
    """Return the rows of `table` at `snapshot_id`."""
    rows = spark.read.option("versionAsOf", snapshot_id).table(f"{CATALOG_NAME}.{table}")
    if TEXT_AT.name not in rows.columns:
        return rows
    # Declared as not deterministic, so that Spark reads texts at the scan, file by file, and not after a join
    # that has shuffled the rows. Spark still prunes the column if nobody selects it.
    texts = F.arrow_udf(_texts_of(storage_of(spark)), "string").asNondeterministic()
    text = F.coalesce("text", texts(TEXT_AT.name, "content_hash"))
    return rows.withColumn("text", text).drop(TEXT_AT.name)


def _texts_of(storage: Mapping[str, str]) -> Callable[..., Iterator[pa.Array]]:
    def texts(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        reader = RegisteredTexts(storage)
        for places, hashes in batches:
            yield from reader.read(places.to_pylist(), hashes)

    return texts
