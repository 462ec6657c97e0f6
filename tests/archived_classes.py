"""Archive the classes that Spark's JVM loads, so that the JVMs of the tests map them instead of parsing them.

    python -m tests.archived_classes FILE

A JVM ignores an archive of another Java or of other jars, so a stale one costs time and nothing else.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.settings import Settings
from factory.spark import build_session

ARCHIVE = Path(sys.prefix) / "classes.jsa"
# A JVM of the tests lives for seconds: compiling for speed costs it more CPU than it gains.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"
_QUIET = "-Xlog:cds*=off"  # an archive that does not fit is no news


def jvm_options() -> str:
    """Options for every JVM that the tests start."""
    archived = f' "-XX:SharedArchiveFile={ARCHIVE}" {_QUIET}' if ARCHIVE.exists() else ""
    return _SHORT_LIVED + archived


def archive_classes(target: Path) -> None:
    """Let Spark work on a small lake, and write the classes that its JVM loaded to `target`."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        written = Path(folder) / target.name
        os.environ["SPARK_SUBMIT_OPTS"] = f'{_SHORT_LIVED} "-XX:ArchiveClassesAtExit={written}" {_QUIET}'
        session = build_session(
            Settings(home=Path(folder), spark_master="local[2]", spark_driver_memory="1g")
        )
        load_classes(session)
        session.stop()
        gateway = SparkContext._gateway
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends, and writes the archive before it does
        gateway.proc.wait()
        written.replace(target)


def load_classes(session: SparkSession) -> None:
    """Read, join, sort, call Python and write, as every stage does."""
    session.sql("CREATE NAMESPACE lake.raw")
    rows = session.range(100).select("id", F.col("id").cast("string").alias("text"))
    rows.mapInArrow(unchanged, rows.schema).sort("text").writeTo("lake.raw.rows").using("iceberg").create()
    table = session.table("lake.raw.rows")
    counted = table.groupBy((F.col("id") % 7).alias("id")).agg(F.count("*"), F.collect_list("text"))
    counted.join(table, "id").collect()
    session.createDataFrame(table.toArrow()).distinct().count()


def unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches as they come."""
    yield from batches


if __name__ == "__main__":
    archive_classes(Path(sys.argv[1]))
