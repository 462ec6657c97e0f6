"""Which documents stay, and for each that does not, the kept one it resembles.

By the default rule what is removed is a minimal vertex cover of the similarity graph, so what stays is a
maximal independent set: no edge joins two kept documents, and every removed one has a kept neighbour, named
with their exact similarity. The set is greedy by priority: the best document of a component stays.
`native/src/keep_rule.rs` has all rules. Components are decided side by side, a document without an edge never
leaves the JVM.

By `one_per_component` a document can go that resembles no kept one: its reason is `connected`, it names the
best of its component, and has no similarity.

An exact copy of a kept document names it, at similarity 1; an exact copy of a removed one names the kept
partner of that one. Documents without tokens are not comparable: all are kept, copies too.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.edges import similar
from factory.dedup.priority import rank
from factory.lake.schemas import DEDUPLICATED
from spark_udfs import decisions as udf

_DECIDED = "doc_id string, kept boolean, duplicate_of string, similarity double"


def decisions(
    documents: DataFrame, signatures: DataFrame, edges: DataFrame, components: DataFrame, config: DedupConfig
) -> DataFrame:
    """One row for every document, kept or not, with its evidence: DECISIONS."""
    joined = similar(edges, config.threshold)
    decided = (
        in_components(ranked(documents, config), joined, components)
        .select("component", "doc_id", "other", "similarity")
        .mapInArrow(partial(udf.decide, keep=config.keep), _DECIDED)
    )
    return _of_copies(documents, _of_representatives(signatures, components, decided))


def deduplicated(documents: DataFrame, decisions: DataFrame) -> DataFrame:
    """The rows of `documents` that were kept: DEDUPLICATED, which is RAW.

    `documents` may be one dataset of the group or all of them; decisions of others are passed over.
    """
    kept = decisions.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi").select(DEDUPLICATED.names)


def ranked(documents: DataFrame, config: DedupConfig, *carried: str) -> DataFrame:
    """(doc_id, rank) of documents by priority, and the columns `carried`."""
    return documents.select("doc_id", rank(documents, config).alias("rank"), *carried)


def in_components(ranks: DataFrame, edges: DataFrame, components: DataFrame) -> DataFrame:
    """(component, doc_id, rank, other, similarity): documents that have an edge, the best first, and edges.

    A component is whole in its partition. A document's row has no `other`, and whatever columns `ranks` has
    besides; an edge's has no `rank` and none of those.
    """
    return (
        _members(ranks, edges, components)
        .unionByName(_edges(edges, components), allowMissingColumns=True)
        .repartition("component")
        .sortWithinPartitions("component", "rank")
    )


def _members(ranks: DataFrame, edges: DataFrame, components: DataFrame) -> DataFrame:
    """The rows of `ranks` that have an edge, with their component."""
    ends = edges.select(F.explode(F.array("left", "right")).alias("doc_id")).distinct()
    return (
        ends.join(components.select("doc_id", "component"), "doc_id")
        .join(ranks, "doc_id")
        .withColumns({"other": F.lit(None).cast("string"), "similarity": F.lit(None).cast("double")})
    )


def _edges(edges: DataFrame, components: DataFrame) -> DataFrame:
    """(component, doc_id, other, similarity) of each edge, without a rank."""
    labels = components.select(F.col("doc_id").alias("left"), "component")
    return edges.join(labels, "left").select(
        "component",
        F.col("left").alias("doc_id"),
        F.lit(None).alias("rank"),
        F.col("right").alias("other"),
        "similarity",
    )


def _of_representatives(signatures: DataFrame, components: DataFrame, decided: DataFrame) -> DataFrame:
    """What was decided on each distinct text."""
    return (
        signatures.select("doc_id", "content_hash", F.col("signature").isNotNull().alias("comparable"))
        .join(components.select("doc_id", "component"), "doc_id", "left")
        .join(decided, "doc_id", "left")
        .select(
            "content_hash",
            F.col("doc_id").alias("representative"),
            "comparable",
            "component",
            F.coalesce("kept", F.lit(True)).alias("representative_kept"),
            F.col("duplicate_of").alias("partner"),
            F.col("similarity").alias("partner_similarity"),
        )
    )


def _of_copies(documents: DataFrame, texts: DataFrame) -> DataFrame:
    """What that means for each document.

    A document whose text has no signature row gets null decisions, which the table refuses.
    """
    first = F.col("doc_id") == F.col("representative")
    kept = ~F.col("comparable") | (first & F.col("representative_kept"))
    reason = (
        F.when(~F.col("comparable"), "no_tokens")
        .when(~first, "exact_copy")
        .when(F.col("representative_kept"), "kept")
        .when(F.col("partner_similarity").isNull(), "connected")
        .otherwise("similar")
    )
    of_kept = F.col("representative_kept")
    return (
        documents.select("doc_id", "dataset", "content_hash", "partition")
        .join(texts, "content_hash", "left")
        .select("*", kept.alias("kept"), reason.alias("reason"))
        .select(
            "doc_id",
            "dataset",
            "kept",
            "reason",
            F.when(
                ~F.col("kept"), F.when(of_kept, F.col("representative")).otherwise(F.col("partner"))
            ).alias("duplicate_of"),
            F.when(~F.col("kept"), F.when(of_kept, F.lit(1.0)).otherwise(F.col("partner_similarity"))).alias(
                "similarity"
            ),
            F.when(F.col("comparable"), F.col("component")).alias("component"),
            "partition",
        )
    )
