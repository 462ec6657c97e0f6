"""Spark's part of write-audit-publish: start a branch, write rows to it, fingerprint the rows.

The publishing commit is in `factory.lake.publish` and needs no Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField, StructType

from factory.lake.fingerprint import Fingerprint, fingerprints
from factory.lake.names import TableName
from factory.lake.publish import Audit, branch_name, drop_branches, head
from factory.lake.schemas.base import TableSchema
from factory.lake.tables import Lake
from factory.lake_spark.read import read_at
from factory.settings import CATALOG_NAME


def begin(
    spark: SparkSession,
    lake: Lake,
    table: TableName,
    schema: TableSchema,
    run_id: str,
    *,
    replaced: bool = False,
) -> Audit:
    """Start the audit branch of a run at main; create the table if it is missing.

    A leftover branch of the same name is replaced, and a damaged table is recreated if all its rows are about
    to be `replaced`.
    """
    made = lake.create(table, schema, replaced=replaced)
    branch, began_at = branch_name(run_id), head(made, "main")
    if began_at is None and head(made, branch) is not None:
        drop_branches(lake, table, branch)  # a branch cannot be replaced while main has no snapshot
    at = f" AS OF VERSION {began_at}" if began_at is not None else ""
    spark.sql(f"ALTER TABLE {CATALOG_NAME}.{table} CREATE OR REPLACE BRANCH {branch}{at}")
    return Audit(table=table, branch=branch, began_at=began_at)


def replace_rows(
    frame: DataFrame,
    audit: Audit,
    schema: TableSchema,
    run_id: str,
    partitions: Sequence[str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Replace the rows of the branch, or only its `partitions`, by the rows of `frame`.

    The snapshot has the `properties`, which checks of the branch read.
    """
    rows = conform(frame, schema)
    if schema.may_shrink:
        held = frame.sparkSession.table(f"{CATALOG_NAME}.{audit.table}").schema
        left = [field for field in held if field.name not in schema.names]
        rows = rows.select("*", *(F.lit(None).cast(it.dataType).alias(it.name) for it in left))
    if schema.sort_by:
        rows = rows.sortWithinPartitions(*schema.sort_by)
    writer = rows.writeTo(f"{CATALOG_NAME}.{audit.table}.branch_{audit.branch}")
    writer = writer.option("snapshot-property.factory.run-id", run_id).option("fanout-enabled", "true")
    for name, text in (properties or {}).items():
        writer = writer.option(f"snapshot-property.{name}", text)
    # Spark infers nullable columns; the writer itself refuses nulls.
    writer = writer.option("check-nullability", "false")
    # `overwritePartitions` would keep old rows where the frame is empty.
    writer.overwrite(F.lit(True) if partitions is None else F.col("partition").isin(list(partitions)))


def read_branch(spark: SparkSession, lake: Lake, audit: Audit) -> DataFrame:
    """Return the current rows of the branch."""
    return read_at(spark, audit.table, head_of(lake, audit))


def head_of(lake: Lake, audit: Audit) -> int:
    """Return the snapshot id of a branch that exists."""
    at = head(lake.table(audit.table), audit.branch)
    assert at is not None
    return at


def content(frame: DataFrame, schema: TableSchema) -> Fingerprint:
    """Return the content fingerprint of the rows of `frame`, summed in Spark's workers."""
    return sum(contents(frame, schema).values(), Fingerprint())


def contents(frame: DataFrame, schema: TableSchema) -> dict[str | None, Fingerprint]:
    """Return the content fingerprint of the rows of `frame` by column `partition`."""
    columns = schema.fingerprinted
    read = frame.select(*columns, "partition")
    sums = read.mapInArrow(_fingerprints(columns), "partition string, total binary, rows long").collect()
    found: dict[str | None, Fingerprint] = defaultdict(Fingerprint)
    for row in sums:
        found[row.partition] += Fingerprint.of_sum(bytes(row.total), row.rows)
    return dict(found)


def spark_schema(schema: TableSchema) -> StructType:
    """Return the declared columns as Spark types."""
    return from_arrow_schema(schema.columns)


def conform(frame: DataFrame, schema: TableSchema) -> DataFrame:
    """Return `frame` with exactly the declared columns, types and order; missing nullable columns are
    null."""
    present = {field.name: field.dataType for field in frame.schema.fields}

    def column(field: StructField) -> Column:
        if present.get(field.name) == field.dataType:
            return F.col(field.name)  # every further call goes to the JVM
        cells = F.col(field.name) if field.name in present or not field.nullable else F.lit(None)
        return cells.cast(field.dataType).alias(field.name)

    return frame.select([column(field) for field in spark_schema(schema).fields])


def _fingerprints(
    columns: Sequence[str],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def per_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = fingerprints(batches, columns, by="partition")
        yield pa.RecordBatch.from_pydict(
            {
                "partition": list(found),
                "total": [of.total.to_bytes(16, "little") for of in found.values()],
                "rows": [of.rows for of in found.values()],
            },
            schema=pa.schema([("partition", pa.string()), ("total", pa.binary()), ("rows", pa.int64())]),
        )

    return per_partition
