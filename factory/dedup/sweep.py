"""What each threshold would keep, from the edges of the lowest one: nothing is signed or compared again.

The edges of a higher threshold are a subset of those there are, so its components lie inside the lowest
one's: these are decided once a threshold, side by side, and what happens to each is added up.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.components import joined
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import in_components, ranked
from spark_udfs.dedup import decisions as udf

_OUTCOME = "threshold double, similar_pairs long, removed long, removed_bytes long, largest_component long"


def sweep(documents: DataFrame, signatures: DataFrame, edges: DataFrame, config: DedupConfig) -> DataFrame:
    """One row for each of `config.thresholds`: SWEEP.

    Exact copies are documents too, removed at every threshold. Reads `doc_id`, `n_bytes` and the columns of
    the priority. Runs a job when called, to count the edges.
    """
    signed = signatures.select("doc_id", "copies", F.col("signature").isNotNull().alias("comparable"))
    texts = documents.join(signed, "doc_id")
    told = (
        in_components(ranked(texts, config, "copies", "n_bytes"), edges, joined(edges, config))
        .select("component", "doc_id", "other", "similarity", "copies", "n_bytes")
        .mapInArrow(partial(udf.sweep, keep=config.keep, thresholds=config.thresholds), _OUTCOME)
        .groupBy("threshold")
        .agg(
            F.sum("similar_pairs").alias("pairs"),
            F.sum("removed").alias("similar"),
            F.sum("removed_bytes").alias("similar_bytes"),
            F.max("largest_component").alias("largest"),
        )
    )
    copies = F.col("copies") - 1
    of_all = texts.agg(
        F.sum("copies").alias("documents"),
        F.sum(copies).alias("copies"),
        F.sum(copies * F.col("n_bytes")).alias("copies_bytes"),
        F.max(F.when(F.col("comparable"), F.col("copies"))).alias("most_copies"),
    )
    thresholds = F.explode(F.array(*map(F.lit, config.thresholds))).alias("threshold")
    removed = _or_none("copies") + _or_none("similar")
    return (
        of_all.select("*", thresholds)
        .join(told, "threshold", "left")
        .select(
            "threshold",
            _or_none("documents").alias("documents"),
            (_or_none("documents") - removed).alias("kept"),
            removed.alias("removed"),
            (_or_none("copies_bytes") + _or_none("similar_bytes")).alias("removed_bytes"),
            _or_none("pairs").alias("similar_pairs"),
            F.greatest(_or_none("most_copies"), _or_none("largest")).alias("largest_component"),
            F.lit(None).cast("string").alias("partition"),
        )
    )


def _or_none(count: str) -> Column:
    """A count, zero where nothing was counted."""
    return F.coalesce(count, F.lit(0).cast("long"))
