"""The kept documents, and for each removed document the kept one in its place.

By the default rule the kept documents are a maximal independent set of the similarity graph, and the removed
ones a minimal vertex cover: no edge joins two kept documents, and every removed document has a kept
neighbour, named with their exact similarity. The set is greedy by priority: the best document of a component
stays. `native/src/dedup/keep_rule.rs` has all rules. One shuffle by component brings edges, texts and their
copies together; a join per question took a dozen Spark stages.

The rule `one_per_component` can remove a document that resembles no kept one: its reason is `connected`, it
names the best of its component, and its similarity is null.

An exact copy duplicates the best copy of its text, at similarity 1. If the best copy is removed, its kept
document is the copy's `kept_document` too; every other removed document duplicates its kept document. A text
without tokens resembles no other text: its best copy is kept.

A document that the group only compares with, a reference, is always kept: it ranks before all others, and no
edge between two references counts. So every other document that resembles one leaves, and names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.dedup.edges import similar
from factory.dedup.priority import REFERENCE, Priority, ranked
from factory.frozen_model import FrozenModel
from factory.lake.schemas.dedup import DEDUPLICATED
from spark_udfs.dedup import decisions as udf

Keep = Literal["independent_set", "one_per_component", "cover"]

_DECISIONS = (
    "doc_id string, dataset string, kept boolean, reason string, duplicate_of string, similarity double, "
    "component string, kept_document string, partition string"
)


class DecisionConfig(FrozenModel):
    """The settings that decide DECISIONS, apart from documents and edges."""

    threshold: float
    keep: Keep
    priority: tuple[Priority, ...]


def decisions(
    documents: DataFrame,
    signatures: DataFrame,
    edges: DataFrame,
    components: DataFrame,
    config: DecisionConfig,
) -> DataFrame:
    """One row per document, kept or not, with its evidence: DECISIONS.

    A document without a signature of its text gets null decisions, which the table refuses.
    """
    has_references = REFERENCE in documents.columns
    pairs = similar(edges, config.threshold)
    if has_references:
        pairs = _without_pairs_of_references(pairs, documents)
    joined = _edges(pairs, components).withColumns({"group": F.col("component"), "copy": F.lit(False)})
    outcome = (
        _with_texts(documents, signatures, components, config.priority)
        .unionByName(joined, allowMissingColumns=True)
        .repartition("group")
        .sortWithinPartitions("group", "copy", "rank")
        .drop("group", "rank")
        .mapInArrow(partial(udf.decide_documents, keep=config.keep), _DECISIONS)
    )
    return _keeping_references(outcome, documents) if has_references else outcome


def _without_pairs_of_references(edges: DataFrame, documents: DataFrame) -> DataFrame:
    references = documents.where(REFERENCE).select("doc_id")
    pairs = edges.select("left", "right")
    for end in ("left", "right"):
        pairs = pairs.join(references.withColumnsRenamed({"doc_id": end}), end, "left_semi")
    return edges.join(pairs, ["left", "right"], "left_anti").select(edges.columns)


def _keeping_references(decisions: DataFrame, documents: DataFrame) -> DataFrame:
    """Decisions in which every reference is kept, also a copy of another one."""
    references = documents.where(REFERENCE).select("doc_id", F.lit(True).alias("is_reference"))
    labels = decisions.join(references, "doc_id", "left")
    keep = {"kept": F.lit(True), "reason": F.lit(REFERENCE)}
    nothing = {name: F.lit(None) for name in ("duplicate_of", "similarity", "kept_document")}
    return labels.withColumns(
        {
            name: F.when(F.col("is_reference"), decision).otherwise(F.col(name))
            for name, decision in (keep | nothing).items()
        }
    ).select(decisions.columns)


def deduplicated(documents: DataFrame, decisions: DataFrame) -> DataFrame:
    """The kept rows of `documents`: DEDUPLICATED, which is RAW.

    `documents` may be one dataset of the group or all; decisions on other documents are ignored.
    """
    kept = decisions.where("kept").select("doc_id")
    return documents.join(kept, "doc_id", "left_semi").select(DEDUPLICATED.names)


def in_components(ranks: DataFrame, edges: DataFrame, components: DataFrame) -> DataFrame:
    """(component, doc_id, rank, other, similarity): documents with an edge, the best first, and edges.

    A component is whole in its partition. The row of a document has no `other`, and all further columns of
    `ranks`; the row of an edge has no `rank` and none of the further columns.
    """
    return (
        _members(ranks, edges, components)
        .unionByName(_edges(edges, components), allowMissingColumns=True)
        .repartition("component")
        .sortWithinPartitions("component", "rank")
    )


def _members(ranks: DataFrame, edges: DataFrame, components: DataFrame) -> DataFrame:
    """The rows of `ranks` with an edge, and their component."""
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
    documents: DataFrame, signatures: DataFrame, components: DataFrame, priority: Sequence[Priority]
) -> DataFrame:
    """Each document with the representative of its text and the representative's component.

    Rows of one component share a `group`; a document without a component is a group of its own.
    """
    labels = components.select(F.col("doc_id").alias("representative"), "component")
    texts = signatures.select(
        "content_hash",
        F.col("doc_id").alias("representative"),
        F.col("signature").isNotNull().alias("comparable"),
    )
    return (  # table by table: Spark knows the size of a table, not of a join, and sends a small one whole
        ranked(documents, priority, "dataset", "content_hash", "partition")
        .join(texts, "content_hash", "left")
        .join(labels, "representative", "left")
        .drop("content_hash")
        .withColumns(
            {
                "group": F.coalesce("component", "representative", "doc_id"),
                "copy": ~F.coalesce(F.col("doc_id") == F.col("representative"), F.lit(False)),
            }
        )
    )
