"""The largest buckets of a group, each with the text of its best document: mostly shared boilerplate.

Licenses, generated files and empty templates fill the largest buckets. They are seldom worth comparing, and a
person recognizes them at a glance. Buckets of several bands with the same best document are one row.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.banding import Banding
from factory.dedup.priority import Priority, rank
from factory.frozen_model import FrozenModel

SHOWN = 20  # rows
_CHARACTERS = 200


class LargestBucketsConfig(FrozenModel):
    """The settings that decide LARGEST_BUCKETS, apart from documents and buckets."""

    banding: Banding
    priority: tuple[Priority, ...]


def largest_buckets(documents: DataFrame, buckets: DataFrame, config: LargestBucketsConfig) -> DataFrame:
    """The best documents of the largest buckets, at most SHOWN: LARGEST_BUCKETS.

    A bucket has at least two distinct texts. The SHOWN * bands largest buckets are examined; among equally
    large ones, the first bands'.
    """
    members = buckets.select("doc_id", F.posexplode("buckets").alias("band", "bucket"))
    sizes = members.groupBy("band", "bucket").agg(F.count("*").alias("members")).where("members > 1")
    largest = sizes.orderBy(F.desc("members"), "band", "bucket").limit(SHOWN * config.banding.bands)
    ranks = documents.select("doc_id", "dataset", rank(documents, config.priority).alias("rank"))
    best = (
        members.join(F.broadcast(largest), ["band", "bucket"])
        .join(ranks, "doc_id")
        .groupBy("band", "bucket", "members")
        .agg(F.min_by(F.struct("doc_id", "dataset"), "rank").alias("best"))
    )
    shown = (
        best.groupBy("best.doc_id", "best.dataset")
        .agg(F.max("members").alias("members"), F.count("*").cast("int").alias("bands"))
        .orderBy(F.desc("members"), "doc_id")
        .limit(SHOWN)
    )
    texts = documents.select("doc_id", F.substring("text", 1, _CHARACTERS).alias("text"))
    return texts.join(F.broadcast(shown), "doc_id").select(
        "doc_id", "dataset", "members", "bands", "text", F.lit(None).cast("string").alias("partition")
    )
