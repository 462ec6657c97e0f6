"""The largest buckets of a group, each with the text of its best document: what many have in common.

A license, a generated file, an empty template: what fills a bucket is seldom worth its comparisons, and a
person sees at a glance what it is. Buckets of several bands that have the same best document are one row.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.priority import rank

SHOWN = 20  # rows
_CHARACTERS = 200


def largest_buckets(documents: DataFrame, buckets: DataFrame, config: DedupConfig) -> DataFrame:
    """The best documents of the largest buckets, SHOWN at most: LARGEST_BUCKETS.

    A bucket has two distinct texts or more. As many buckets as SHOWN times the bands are looked into, the
    largest ones, of equally large ones those of the first bands.
    """
    placed = buckets.select("doc_id", F.posexplode("buckets").alias("band", "bucket"))
    sizes = placed.groupBy("band", "bucket").agg(F.count("*").alias("members")).where("members > 1")
    largest = sizes.orderBy(F.desc("members"), "band", "bucket").limit(SHOWN * config.banding.bands)
    ranks = documents.select("doc_id", "dataset", rank(documents, config).alias("rank"))
    best = (
        placed.join(F.broadcast(largest), ["band", "bucket"])
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
