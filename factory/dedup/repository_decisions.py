"""Which documents stay once whole repositories are removed: the others are decided by themselves.

If the best copy of a text was in a removed repository, the best remaining copy represents the text, so a
removed repository never removes documents outside it. Every document of a removed repository goes, for the
reason `repository` (a duplicate) or `topic`. It names the kept document that resembles it most, with their
exact similarity, if there is one; otherwise the row of its repository is the only evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.decisions import DecisionConfig, decisions
from factory.dedup.edges import similar
from factory.dedup.priority import Priority, ranked
from factory.dedup.repository_nodes import repository_id
from factory.lake.schemas.dedup import DECISIONS


def decisions_without(
    documents: DataFrame,
    signatures: DataFrame,
    edges: DataFrame,
    components: DataFrame,
    repositories: DataFrame,
    config: DecisionConfig,
) -> DataFrame:
    """One row per document: DECISIONS, where no document of a removed repository stays.

    Runs jobs when called: the remaining documents' decisions and texts are read several times.
    """
    removed = repositories.where("NOT kept").select(
        "repository_id", F.when(F.col("reason") == "topic", "topic").otherwise("repository").alias("gone")
    )
    marked = documents.withColumn("repository_id", repository_id()).join(removed, "repository_id", "left")
    left = marked.where("gone IS NULL").drop("repository_id", "gone")
    first = _first_copies(left, signatures, config.priority).localCheckpoint()
    decided = decisions(
        left,
        signatures.join(first, "doc_id").drop("doc_id").withColumnRenamed("first", "doc_id"),
        _renamed(edges, first),
        components.join(first, "doc_id").drop("doc_id").withColumnRenamed("first", "doc_id"),
        config,
    ).localCheckpoint()
    stay = ranked(left, config.priority).join(decided.where("kept").select("doc_id"), "doc_id")
    kept = first.join(stay.withColumnRenamed("doc_id", "first"), "first").select(
        F.col("doc_id").alias("text_id"), F.col("first").alias("kept_document"), "rank"
    )
    went = marked.where("gone IS NOT NULL").select("doc_id", "dataset", "content_hash", "gone", "partition")
    return decided.unionByName(
        _of_removed(went, signatures, edges, components, kept.localCheckpoint(), config.threshold)
    )


def _first_copies(left: DataFrame, signatures: DataFrame, priority: Sequence[Priority]) -> DataFrame:
    """(doc_id, first): the best remaining copy of each text, by the `doc_id` of the text in `signatures`."""
    best = (
        ranked(left, priority, "content_hash")
        .groupBy("content_hash")
        .agg(F.min_by("doc_id", "rank").alias("first"))
    )
    return signatures.select("doc_id", "content_hash").join(best, "content_hash").select("doc_id", "first")


def _renamed(edges: DataFrame, first: DataFrame) -> DataFrame:
    """The edges between remaining texts, with the ids of their first copies."""
    for side in ("left", "right"):
        edges = edges.join(first.toDF(side, f"first_{side}"), side)
    return edges.select(
        F.col("first_left").alias("left"), F.col("first_right").alias("right"), "estimate", "similarity"
    )


def _of_removed(
    removed: DataFrame,
    signatures: DataFrame,
    edges: DataFrame,
    components: DataFrame,
    kept: DataFrame,
    threshold: float,
) -> DataFrame:
    """DECISIONS on the documents of removed repositories; `kept` are the kept texts."""
    texts = signatures.select(
        "content_hash", F.col("doc_id").alias("text_id"), F.col("signature").isNotNull().alias("comparable")
    )
    pairs = similar(edges, threshold)
    either = pairs.select("left", "right", "similarity").union(pairs.select("right", "left", "similarity"))
    selves = kept.select("text_id", F.col("text_id").alias("other"), F.lit(1.0).alias("similarity"))
    nearest = (
        either.toDF("text_id", "other", "similarity")
        .union(selves)
        .join(kept.withColumnRenamed("text_id", "other"), "other")
        .groupBy("text_id")
        .agg(
            F.min_by(
                F.struct("kept_document", "similarity"), F.struct(-F.col("similarity"), F.col("rank"))
            ).alias("nearest")
        )
    )
    return (
        removed.join(texts, "content_hash", "left")
        .join(components.select(F.col("doc_id").alias("text_id"), "component"), "text_id", "left")
        .join(nearest, "text_id", "left")
        .select(
            "doc_id",
            "dataset",
            F.lit(False).alias("kept"),
            F.col("gone").alias("reason"),
            F.col("nearest.kept_document").alias("duplicate_of"),
            F.col("nearest.similarity").alias("similarity"),
            F.when(F.col("comparable"), F.col("component")).alias("component"),
            F.col("nearest.kept_document").alias("kept_document"),
            "partition",
        )
        .select(DECISIONS.names)
    )
