"""Decisions on exact copies alone, for documents that their texts do not tell apart: pictures with captions.

Two documents are copies if their content hashes are equal, so if both text and pictures are. The first by key
stays, and no document is compared with another.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def exact_copies(documents: DataFrame, dataset: str) -> DataFrame:
    """Return DECISIONS of the `documents` of a dataset; reads their hashes and keys, and no text."""
    hashes = documents.select("doc_id", "key", "content_hash", "partition")
    firsts = hashes.groupBy("content_hash").agg(
        F.min(F.struct("key", "doc_id"))["doc_id"].alias("first"), F.count("*").alias("n")
    )
    is_first = F.col("doc_id") == F.col("first")
    copy_of = F.when(~is_first, F.col("first"))
    return hashes.join(firsts, "content_hash").select(
        "doc_id",
        F.lit(dataset).alias("dataset"),
        is_first.alias("kept"),
        F.when(is_first, "kept").otherwise("exact_copy").alias("reason"),
        copy_of.alias("duplicate_of"),
        F.when(~is_first, 1.0).alias("similarity"),
        F.when(F.col("n") > 1, F.col("first")).alias("component"),
        copy_of.alias("kept_document"),
        "partition",
    )
