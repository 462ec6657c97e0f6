"""Spark frames: their columns against a declared schema, and how many partitions a shuffle makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from factory.lake.schemas.base import TableSchema
from factory.lake_spark.audit import spark_schema


def assert_declared(frame: DataFrame, schema: TableSchema) -> None:
    """The columns of a frame have the names, order and types that are declared."""
    found, declared = (
        [(field.name, field.dataType) for field in it] for it in (frame.schema, spark_schema(schema))
    )
    assert found == declared


@contextmanager
def shuffle_partitions(spark: SparkSession, n: int) -> Iterator[None]:
    """Shuffle into `n` partitions."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, str(n))
    try:
        yield
    finally:
        spark.conf.set(name, before)
