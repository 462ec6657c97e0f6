"""Records that repeat another: of one key the first is the document, of one address the latest if asked."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.lake.schemas.ingest import REJECTED
from spark_udfs.ingest.rows import key_taken, older_capture

Resolve = Callable[[DataFrame], tuple[DataFrame, DataFrame]]
"""A function of the documents of a scan: those that stay, and the others as rejected records."""


def first_of_each_key(documents: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the first document of each key, by file and location, and the others as rejected records."""
    place = F.struct("file", "row", "location")
    others = (
        documents.groupBy("doc_id").agg(F.min(place).alias("first"), F.count("*").alias("n")).where("n > 1")
    )
    # Broadcast, so that documents stay in the order of their files; only repeated keys travel.
    with_other = documents.join(F.broadcast(others.select("doc_id", "first")), "doc_id", "left")
    is_first = F.col("first").isNull() | (F.col("first") == place)
    later = with_other.where(~is_first).select(
        "source", "key", "text", "n_bytes", "file", "row", "location", "first"
    )
    return with_other.where(is_first), later.mapInArrow(key_taken, from_arrow_schema(REJECTED.columns))


def latest_captures(documents: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the latest document of each address, by time and place, and the others as rejected records.

    The documents are shuffled by address: crawls of years capture so many addresses again that these fit in
    no memory. A document without an address is its own latest, and has a task by its id.
    """
    time_and_place = F.struct("created_at", "file", "row", "location")
    address = F.coalesce(F.col("metadata")["url"], F.concat(F.lit(" "), "doc_id"))
    with_address = documents.withColumn("address", address)
    latest = with_address.groupBy("address").agg(F.max(time_and_place).alias("latest"))
    captures = with_address.join(latest.hint("merge"), "address").drop("address")
    is_latest = F.col("latest") == time_and_place
    columns = ("source", "key", "text", "n_bytes", "file", "location", "latest")
    older = captures.where(~is_latest).select(*columns)
    return captures.where(is_latest), older.mapInArrow(older_capture, from_arrow_schema(REJECTED.columns))
