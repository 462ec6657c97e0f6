"""Published tables as lazy DataFrames, always at a named snapshot.

An unpinned DataFrame changes under its reader when somebody publishes; `versionAsOf` holds it still.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from factory.lake.names import TableName
from factory.settings import CATALOG_NAME


def read_at(spark: SparkSession, table: TableName, snapshot_id: int) -> DataFrame:
    """The rows of `table` at `snapshot_id`."""
    return spark.read.option("versionAsOf", snapshot_id).table(f"{CATALOG_NAME}.{table}")
