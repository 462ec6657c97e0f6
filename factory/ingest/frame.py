"""A DataFrame of a user as raw documents and rejected records (`spark_udfs.ingest.frame`)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.ingest.readers import Ingested
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.suggestions import quoted
from spark_udfs.ingest.frame import TEXT, key_taken_in_frame, read_frame
from spark_udfs.ingest.rows import SAMPLE_BYTES, SCAN


def documents_of_frame(frame: DataFrame, dataset: str, *, in_partitions: bool = False) -> Ingested:
    """Return the rows of a DataFrame as documents of `dataset`; the columns of `RAW` are taken by name.

    A dataset `in_partitions` has partitions of its own, which replace a column `partition`. Of several rows
    with one key the one with the smallest hash is the document. Raises ConfigurationError for a DataFrame
    without a column `text` of text, or with two columns of one name.
    """
    _require_text(frame, dataset)
    read = partial(read_frame, dataset=dataset, in_partitions=in_partitions)
    scan = frame.mapInArrow(read, from_arrow_schema(SCAN)).persist(StorageLevel.MEMORY_AND_DISK)
    documents, repeats = _first_of_each_key(scan.where(F.col("reason").isNull()))
    return Ingested(
        documents=documents.select(RAW.names),
        rejected=_with_numbers(scan.where(F.col("reason").isNotNull())).unionByName(repeats),
        scan=scan,
        of_many_records=False,
        of_frame=True,
    )


def with_records_of_readers(frame_reading: Ingested, readings: Ingested) -> Ingested:
    """Return the documents of a DataFrame with the rejected records of the readers that it was made from.

    Among the files of the first reader those without a document count as lost.
    """
    return replace(
        readings,
        documents=frame_reading.documents,
        rejected=frame_reading.rejected.unionByName(readings.rejected),
        of_frame=True,
    )


def _require_text(frame: DataFrame, dataset: str) -> None:
    names = frame.columns
    if repeats := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ConfigurationError(
            f"The rows of `{dataset}` have two columns `{repeats[0]}`. Rename or drop one, for example "
            "behind a join."
        )
    if TEXT not in names:
        raise ConfigurationError(
            f"The rows of `{dataset}` have no column `{TEXT}`, only {quoted(names)}. Name one of them so: "
            f'withColumnRenamed("body", "{TEXT}").'
        )
    kind = frame.schema[TEXT].dataType
    if not isinstance(kind, T.StringType | T.BinaryType):
        raise ConfigurationError(
            f"Column `{TEXT}` of the rows of `{dataset}` is {kind.simpleString()}, not text. Make text of "
            f"it, for example with `F.to_json` or `F.concat_ws`, and name that `{TEXT}`."
        )


def _first_of_each_key(documents: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return one document of each key, and the rows with the same key as rejected records."""
    groups = documents.groupBy("doc_id").agg(F.min("location").alias("first"), F.count("*").alias("n"))
    # Broadcast, so that documents need not travel; only repeats keys do.
    repeats = F.broadcast(groups.where("n > 1").select("doc_id", "first"))
    with_first = documents.join(repeats, "doc_id", "left")
    alone, others = (with_first.where(F.col("first").isNull() == is_alone) for is_alone in (True, False))
    firsts = others.where(F.col("first") == F.col("location")).dropDuplicates(["doc_id"])
    equal = others.groupBy("doc_id", "location", "source", "key", "first").agg(
        F.first("n_bytes").alias("n_bytes"),
        F.first(F.substring("text", 1, SAMPLE_BYTES)).alias("sample"),
        (F.count("*") - F.max((F.col("first") == F.col("location")).cast("int"))).alias("n_records"),
    )
    clashes = equal.where("n_records > 0").drop("doc_id")
    return alone.unionByName(firsts), clashes.mapInArrow(
        key_taken_in_frame, from_arrow_schema(REJECTED.columns)
    )


def _with_numbers(bad_rows: DataFrame) -> DataFrame:
    """Return rejected records, equal rows as one with their number."""
    others = [name for name in REJECTED.names if name not in ("doc_id", "n_records")]
    counts = bad_rows.groupBy("doc_id").agg(
        *(F.first(name).alias(name) for name in others), F.count("*").alias("n")
    )
    return counts.withColumn("n_records", F.when(F.col("n") > 1, F.col("n"))).select(REJECTED.names)
