"""Write the classes that a run loads to a file, by running Spark on a small lake next to the file.

    python -m factory.spark.archive FILE

`factory.spark.classes` starts it, once for each Java and each set of jars.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from factory.settings import Settings
from factory.spark.classes import archiving_options
from factory.spark.session import build_session, end_jvm


def archive_classes(target: Path) -> None:
    """Run Spark on a small lake and write the classes of its JVM to `target`."""
    settings = Settings(
        home=target.parent / "lake",
        warehouse=None,  # not the user's
        spark_master="local[2]",
        spark_driver_memory="1g",
        java_compiler="quick",
    )
    session = build_session(settings, archiving_options(target))
    load_classes(session)
    end_jvm()  # in order: the JVM writes the archive before it exits


def load_classes(session: SparkSession) -> None:
    """Read, join, sort, rank, call Python and write to a branch, as every stage does."""
    session.sql("CREATE NAMESPACE lake.raw")
    session.sql("CREATE TABLE lake.raw.rows (id bigint, text string, place struct<file:string,row:bigint>)")
    session.sql("ALTER TABLE lake.raw.rows CREATE OR REPLACE BRANCH audit")
    rows = session.range(100).select("id", F.col("id").cast("string").alias("text"))
    rows = rows.mapInArrow(unchanged, rows.schema).sort("text")
    placed = rows.withColumn("place", F.struct(F.col("text").alias("file"), F.col("id").alias("row")))
    placed.writeTo("lake.raw.rows.branch_audit").overwrite(F.lit(True))
    table = session.read.option("branch", "audit").table("lake.raw.rows")
    counted = table.groupBy((F.col("id") % 7).alias("id")).agg(F.count("*"), F.collect_list("text"))
    counted.join(table, "id").collect()
    ranked = table.withColumn("rank", F.row_number().over(Window.partitionBy("text").orderBy(F.desc("id"))))
    ranked.filter("rank = 1").select(F.xxhash64("text"), F.explode(F.split("text", ""))).distinct().count()
    files = table.repartition(2, "id").groupBy("place.file").agg(F.min("id"), F.max(F.struct("id", "text")))
    session.createDataFrame(files.toArrow()).orderBy("file").persist().toArrow()


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches as they come."""
    yield from batches


if __name__ == "__main__":
    archive_classes(Path(sys.argv[1]))
