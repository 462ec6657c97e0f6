"""Which documents stay once whole repositories are gone: those left are decided among each other.

A text whose best copy went with its repository is stood for by the best copy that is left, so the removal of
a repository never takes with it what another, kept one holds. A document of a removed repository goes,
whatever it resembles, for the reason `repository` (a duplicate) or `topic`. It names the kept document that
it resembles most, with their exact similarity, if there is one; if not, the row of its repository is all the
evidence.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.decisions import decisions, ranked
from factory.dedup.edges import similar
from factory.dedup.repository_nodes import repository_id
from factory.lake.schemas import DECISIONS


def decisions_without(
    documents: DataFrame,
    signatures: DataFrame,
    edges: DataFrame,
    components: DataFrame,
    repositories: DataFrame,
    config: DedupConfig,
) -> DataFrame:
    """One row for every document: DECISIONS, where those of removed `repositories` do not stay.

    Runs jobs when called: what is decided on the documents left, and their texts, are used several times.
    """
    removed = repositories.where("NOT kept").select(
        "repository_id", F.when(F.col("reason") == "topic", "topic").otherwise("repository").alias("gone")
    )
    told = documents.withColumn("repository_id", repository_id()).join(removed, "repository_id", "left")
    left = told.where("gone IS NULL").drop("repository_id", "gone")
    first = _first_copies(left, signatures, config).localCheckpoint()
    decided = decisions(
        left,
        signatures.join(first, "doc_id").drop("doc_id").withColumnRenamed("first", "doc_id"),
        _renamed(edges, first),
        components.join(first, "doc_id").drop("doc_id").withColumnRenamed("first", "doc_id"),
        config,
    ).localCheckpoint()
    stay = ranked(left, config).join(decided.where("kept").select("doc_id"), "doc_id")
    kept = first.join(stay.withColumnRenamed("doc_id", "first"), "first").select(
        F.col("doc_id").alias("text_id"), F.col("first").alias("kept_document"), "rank"
    )
    went = told.where("gone IS NOT NULL").select("doc_id", "dataset", "content_hash", "gone", "partition")
    return decided.unionByName(
        _of_removed(went, signatures, edges, components, kept.localCheckpoint(), config)
    )


def _first_copies(left: DataFrame, signatures: DataFrame, config: DedupConfig) -> DataFrame:
    """(doc_id, first): the best document that is left of each text, by the text's row of `signatures`."""
    best = (
        ranked(left, config, "content_hash")
        .groupBy("content_hash")
        .agg(F.min_by("doc_id", "rank").alias("first"))
    )
    return signatures.select("doc_id", "content_hash").join(best, "content_hash").select("doc_id", "first")


def _renamed(edges: DataFrame, first: DataFrame) -> DataFrame:
    """The edges between texts that are left, by their first copies."""
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
    config: DedupConfig,
) -> DataFrame:
    """What is said of the documents of removed repositories; `kept` are the kept texts."""
    texts = signatures.select(
        "content_hash", F.col("doc_id").alias("text_id"), F.col("signature").isNotNull().alias("comparable")
    )
    pairs = similar(edges, config.threshold)
    either = pairs.select("left", "right", "similarity").union(pairs.select("right", "left", "similarity"))
    selves = kept.select("text_id", F.col("text_id").alias("other"), F.lit(1.0).alias("similarity"))
    alike = (
        either.toDF("text_id", "other", "similarity")
        .union(selves)
        .join(kept.withColumnRenamed("text_id", "other"), "other")
        .groupBy("text_id")
        .agg(
            F.min_by(
                F.struct("kept_document", "similarity"), F.struct(-F.col("similarity"), F.col("rank"))
            ).alias("alike")
        )
    )
    return (
        removed.join(texts, "content_hash", "left")
        .join(components.select(F.col("doc_id").alias("text_id"), "component"), "text_id", "left")
        .join(alike, "text_id", "left")
        .select(
            "doc_id",
            "dataset",
            F.lit(False).alias("kept"),
            F.col("gone").alias("reason"),
            F.col("alike.kept_document").alias("duplicate_of"),
            F.col("alike.similarity").alias("similarity"),
            F.when(F.col("comparable"), F.col("component")).alias("component"),
            "partition",
        )
        .select(DECISIONS.names)
    )
