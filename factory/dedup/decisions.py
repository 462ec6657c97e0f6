"""Which documents stay, and for each that does not, the kept one it resembles.

By the default rule what is removed is a minimal vertex cover of the similarity graph, so what stays is a
maximal independent set: no edge joins two kept documents, and every removed one has a kept neighbour, named
with their exact similarity. The set is greedy by priority: the best document of a component stays.
`native/src/dedup/keep_rule.rs` has all rules. Components are decided side by side: edges, texts and the
copies of these meet in one shuffle by component, where a join for each question took a dozen Spark stages.

By `one_per_component` a document can go that resembles no kept one: its reason is `connected`, it names the
best of its component, and has no similarity.

An exact copy of a kept document names it, at similarity 1; an exact copy of a removed one names the kept
partner of that one. A text without tokens is like no other text: the best of its copies is kept.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.config import DedupConfig
from factory.dedup.edges import similar
from factory.dedup.priority import rank
from factory.lake.schemas import DEDUPLICATED
from spark_udfs.dedup import decisions as udf

_DECIDED = (
    "doc_id string, dataset string, kept boolean, reason string, duplicate_of string, similarity double, "
    "component string, partition string"
)


def decisions(
    documents: DataFrame, signatures: DataFrame, edges: DataFrame, components: DataFrame, config: DedupConfig
) -> DataFrame:
    """One row for every document, kept or not, with its evidence: DECISIONS.

    A document whose text has no signature row gets null decisions, which the table refuses.
    """
    joined = _edges(similar(edges, config.threshold), components).withColumns(
        {"group": F.col("component"), "copy": F.lit(False)}
    )
    return (
        _with_texts(documents, signatures, components, config)
        .unionByName(joined, allowMissingColumns=True)
        .repartition("group")
        .sortWithinPartitions("group", "copy", "rank")
        .drop("group", "rank")
        .mapInArrow(partial(udf.decide_documents, keep=config.keep), _DECIDED)
    )


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


def _with_texts(
    documents: DataFrame, signatures: DataFrame, components: DataFrame, config: DedupConfig
) -> DataFrame:
    """Each document with the representative of its text and the component of that.

    `group` brings these together: the component, or the document where it has none.
    """
    labels = components.select(F.col("doc_id").alias("representative"), "component")
    texts = signatures.select(
        "content_hash",
        F.col("doc_id").alias("representative"),
        F.col("signature").isNotNull().alias("comparable"),
    ).join(labels, "representative", "left")
    return (
        ranked(documents, config, "dataset", "content_hash", "partition")
        .join(texts, "content_hash", "left")
        .drop("content_hash")
        .withColumns(
            {
                "group": F.coalesce("component", "representative", "doc_id"),
                "copy": ~F.coalesce(F.col("doc_id") == F.col("representative"), F.lit(False)),
            }
        )
    )
