"""The results of a job as DataFrames: its items, its refusals, and its records with facts on documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window

from factory.lake.identity import DERIVED_FROM_KEY
from factory.lake.schemas.ingest import REJECTED
from factory.lake.schemas.synthesis import ITEMS
from spark_udfs.synthesis.results import (
    FILE,
    RECORDS,
    ReadResults,
    capped_rows,
    item_rows,
    record_rows,
    refusal_rows,
)

CARRIED = ("repository", "path", "revision", "license", "fork_of", "stars", "created_at", "quality")
"""The columns of a source document that its records have too."""

_OF_JOB = ("worker", "worker_version", "job", "job_seed")

FACTS = (*_OF_JOB, DERIVED_FROM_KEY, "derived_from")
"""The metadata of every record, whatever its worker adds."""

_MOST_TASKS = 64  # that read result files


def job_facts(worker: str, version: str, job_id: str, seed: int) -> dict[str, str]:
    """Return the metadata that all records of a job share."""
    return dict(zip(_OF_JOB, (worker, version, job_id, str(seed)), strict=True))


def items_of(spark: SparkSession, files: Sequence[str], read: ReadResults) -> DataFrame:
    """Return the rows of `ITEMS` that the result files hold."""
    return _files(spark, files).mapInArrow(partial(item_rows, read=read), from_arrow_schema(ITEMS.columns))


def refusals_of(spark: SparkSession, files: Sequence[str], read: ReadResults, dataset: str) -> DataFrame:
    """Return the refusals in result files, as rejected records of `dataset`."""
    rows = partial(refusal_rows, read=read, dataset=dataset)
    return _files(spark, files).mapInArrow(rows, from_arrow_schema(REJECTED.columns))


def records_of(
    spark: SparkSession,
    files: Sequence[str],
    read: ReadResults,
    documents: DataFrame,
    dataset: str,
    facts: Mapping[str, str],
) -> DataFrame:
    """Return the records in result files as rows of `dataset`, with the columns of their documents.

    `documents` has the source of the job. A row has the columns `CARRIED` of its document, and as metadata
    the `facts` on the job, the values of the worker, and the key that draws the document for the validation
    part of its dataset, so that a record is on the same side (`factory.lake.identity.draw`).
    """
    records = _files(spark, files).mapInArrow(partial(record_rows, read=read), from_arrow_schema(RECORDS))
    of_document = documents.select(
        F.col("doc_id"),
        *CARRIED,
        F.col("language").alias("document_language"),
        F.coalesce(F.col("metadata")[DERIVED_FROM_KEY], F.col("key")).alias("drawn_by"),
    )
    of_job = F.create_map(*(F.lit(part) for pair in facts.items() for part in pair))
    draw_key = F.create_map(F.lit(DERIVED_FROM_KEY), F.col("drawn_by"))
    return records.join(of_document, "doc_id").select(
        "doc_id",
        "text",
        F.concat_ws("#", "item_key", "key").alias("key"),
        F.concat_ws("/", "source", F.lit(dataset)).alias("source"),
        *CARRIED,
        F.coalesce(F.col("values")["language"], F.col("document_language")).alias("language"),
        F.map_concat(
            F.map_filter(F.col("values"), lambda name, _: name != F.lit("language")),
            of_job,
            draw_key,
        ).alias("metadata"),
    )


def within_caps(records: DataFrame, column: str, most: int) -> tuple[DataFrame, DataFrame]:
    """Return the first `most` records of each value of a column, and the others; records without it stay.

    The first are those with the smallest hash of their source and key: no order of the work decides.
    """
    order = F.sha2(F.concat_ws("\0", "source", "key"), 256)
    place = F.row_number().over(Window.partitionBy(column).orderBy(order))
    ranks = records.withColumn("place", F.when(F.col(column).isNotNull(), place).otherwise(F.lit(0)))
    return (
        ranks.where(F.col("place") <= most).drop("place"),
        ranks.where(F.col("place") > most).drop("place"),
    )


def above_cap(records: DataFrame, column: str, most: int) -> DataFrame:
    """Return records above the cap of a column as rejected records."""
    rows = partial(capped_rows, column=column, most=most)
    return records.select("source", "key", "text", column).mapInArrow(
        rows, from_arrow_schema(REJECTED.columns)
    )


def _files(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """A row for each file, spread over tasks."""
    rows = spark.createDataFrame([(file,) for file in files], f"{FILE} string")
    return rows.repartition(max(1, min(len(files), _MOST_TASKS)))
