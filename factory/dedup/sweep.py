"""Documents that each threshold keeps, from the edges of the lowest one, without signing or comparing again.

The edges of a higher threshold are a subset of the edges of the lowest, so its components lie inside the
lowest threshold's components. Workers decide each component once per threshold and add up the outcomes.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from factory.dedup.components import joined
from factory.dedup.decisions import Keep, in_components
from factory.dedup.priority import Priority, ranked
from factory.frozen_model import FrozenModel
from spark_udfs.dedup import decisions as udf

_OUTCOME = "threshold double, similar_pairs long, removed long, removed_bytes long, largest_component long"


class SweepConfig(FrozenModel):
    """The settings that decide SWEEP, apart from documents and edges."""

    thresholds: tuple[float, ...]
    keep: Keep
    priority: tuple[Priority, ...]


def sweep(documents: DataFrame, signatures: DataFrame, edges: DataFrame, config: SweepConfig) -> DataFrame:
    """One row per threshold: SWEEP.

    Exact copies count as documents, removed at every threshold. Reads `doc_id`, `n_bytes` and the columns of
    the priority. Runs a job when called, to count the edges.
    """
    signed = signatures.select("doc_id", "copies", F.col("signature").isNotNull().alias("comparable"))
    texts = documents.join(signed, "doc_id")
    outcomes = (
        in_components(
            ranked(texts, config.priority, "copies", "n_bytes"), edges, joined(edges, edges.count())
        )
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
    totals = texts.agg(
        F.sum("copies").alias("documents"),
        F.sum(copies).alias("copies"),
        F.sum(copies * F.col("n_bytes")).alias("copies_bytes"),
        F.max(F.when(F.col("comparable"), F.col("copies"))).alias("most_copies"),
    )
    thresholds = F.explode(F.array(*map(F.lit, config.thresholds))).alias("threshold")
    removed = _or_zero("copies") + _or_zero("similar")
    return (
        totals.select("*", thresholds)
        .join(outcomes, "threshold", "left")
        .select(
            "threshold",
            _or_zero("documents").alias("documents"),
            (_or_zero("documents") - removed).alias("kept"),
            removed.alias("removed"),
            (_or_zero("copies_bytes") + _or_zero("similar_bytes")).alias("removed_bytes"),
            _or_zero("pairs").alias("similar_pairs"),
            F.greatest(_or_zero("most_copies"), _or_zero("largest")).alias("largest_component"),
            F.lit(None).cast("string").alias("partition"),
        )
    )


def _or_zero(count: str) -> Column:
    return F.coalesce(count, F.lit(0).cast("long"))
