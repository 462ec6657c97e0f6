"""Which repositories stay, and why: a removed one names a better one that holds nearly all of it, or a topic.

1. Repositories that hold texts of one component of documents are joined. A license, a vendored file or a
   template suffices, so they make a giant component. Topics split it: joins across two topics do not count,
   and repositories without a topic share a topic of their own.
2. All repositories of a dropped topic go.
3. A remaining repository is the duplicate of a better one of its topic that holds equal or similar texts for
   `share` of its documents and of its bytes. The priority decides which is better
   (`factory.dedup.repository_nodes`), so a fork gives way to its original and never the reverse, whichever
   holds more. Documents and repositories follow the same keep rule: no kept repository is a duplicate of a
   better kept one, and every removed one names a kept one that shares enough with it.
4. A pinned repository stays, regardless of its topic and of its duplicates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.components import joined
from factory.dedup.decisions import in_components
from factory.dedup.edges import similar
from factory.dedup.repository_edges import RepositoryEdgeConfig, reach
from factory.dedup.repository_nodes import least_share, repositories_of, texts_held
from factory.errors import ConfigurationError
from factory.lake.schemas.dedup import REPOSITORIES, TOPICS
from spark_udfs.dedup import decisions as udf

_DECIDED = "repository_id string, stays boolean, of string, similarity double"


class RepositoryDecisionConfig(RepositoryEdgeConfig):
    """The settings that decide REPOSITORIES, apart from documents, edges and topics."""

    dropped_topics: tuple[str, ...]


def repositories(
    documents: DataFrame,
    signatures: DataFrame,
    edges: DataFrame,
    components: DataFrame,
    repository_edges: DataFrame,
    topics: DataFrame | None,
    config: RepositoryDecisionConfig,
) -> DataFrame:
    """One row per repository, kept or not, with its evidence: REPOSITORIES.

    `topics` are rows (repository, topic): TOPICS. Runs jobs when called. Raises ConfigurationError for topics
    without these columns.
    """
    held = texts_held(documents, signatures).localCheckpoint()
    found = _with_topics(
        repositories_of(documents, held, config.priority, config.pinned), topics
    ).localCheckpoint()
    labels = _component(held, found, components)
    in_topic = labels if topics is None else _component(held, found, components, "topic")
    dropped = F.col("topic").isin(*config.dropped_topics) & ~F.col("pinned")
    left = found.where(~F.coalesce(dropped, F.lit(False)))
    decided = _decided(left, _duplicates(left, repository_edges, config.share).localCheckpoint())
    reason = (
        F.when(F.col("pinned"), "pinned")
        .when(dropped, "topic")
        .when(F.coalesce("stays", F.lit(True)), "kept")
        .otherwise("duplicate")
    )
    return (
        found.join(labels, "repository_id", "left")
        .join(in_topic.withColumnRenamed("component", "component_in_topic"), "repository_id", "left")
        .join(_shared(held, similar(edges, config.threshold)), "repository_id", "left")
        .join(decided, "repository_id", "left")
        .withColumns(
            {
                "share_elsewhere": least_share("shared", "shared_bytes"),
                "common_documents": F.coalesce("common", F.lit(0).cast("long")),
                "component": F.coalesce("component", "repository_id"),
                "component_in_topic": F.coalesce("component_in_topic", "repository_id"),
                "reason": reason,
                "kept": reason.isin("kept", "pinned"),
                "partition": F.lit(None).cast("string"),
            }
        )
        .select(REPOSITORIES.names)
    )


def facts(
    repositories: DataFrame, pinned: Sequence[str], dropped_topics: Sequence[str]
) -> dict[str, str | int]:
    """The table in a few numbers and sentences, with pins and topics that match no repository; runs jobs."""
    of_reason = {row.reason: row["count"] for row in repositories.groupBy("reason").count().collect()}
    n = sum(of_reason.values())
    found: dict[str, str | int] = {"repositories": n}
    found |= {f"repositories, {reason}": of_reason[reason] for reason in sorted(of_reason)}
    found["largest component"] = _largest(repositories, "component", n)
    found["largest component within a topic"] = _largest(repositories, "component_in_topic", n)
    revision = F.concat("repository", F.lit("@"), "revision")
    for fact, names, columns in (
        ("pinned but missing", pinned, [F.col("repository"), revision]),
        ("dropped topics without a repository", dropped_topics, [F.col("topic")]),
    ):
        matching = repositories.select(F.explode(F.array(*columns)).alias("name")).where(
            F.col("name").isin(list(names))
        )
        missing = set(names) - ({row.name for row in matching.distinct().collect()} if names else set())
        if missing:
            found[fact] = ", ".join(sorted(missing))
    return found


def _largest(repositories: DataFrame, column: str, n: int) -> str:
    """The largest component's share of the repositories, and its name."""
    sizes = repositories.groupBy(column).agg(F.count("*").alias("size"))
    for row in sizes.orderBy(F.desc("size"), column).limit(1).collect():
        return f"{row.size / n:.1%} of the repositories ({row.size:,} of {n:,}): {row[column]}"
    return "none"


def _with_topics(found: DataFrame, topics: DataFrame | None) -> DataFrame:
    if topics is None:
        return found.withColumn("topic", F.lit(None).cast("string"))
    for column in (*TOPICS.key, "topic"):
        if column not in topics.columns:
            raise ConfigurationError(
                f"The table of topics lacks column `{column}`. Columns: {', '.join(topics.columns)}. "
                "Write one row per repository, with its name and topic."
            )
    return found.join(topics.groupBy("repository").agg(F.min("topic").alias("topic")), "repository", "left")


def _component(held: DataFrame, found: DataFrame, components: DataFrame, *within: str) -> DataFrame:
    """(repository_id, component) of repositories that hold texts of one component of documents."""  # 1
    in_components = (
        held.join(components.select(F.col("doc_id").alias("text_id"), "component"), "text_id")
        .join(found.select("repository_id", *within), "repository_id")
        .select("repository_id", "component", *within)
        .distinct()
    )
    first = F.min("repository_id").over(Window.partitionBy("component", *within))
    stars = (
        in_components.select(first.alias("left"), F.col("repository_id").alias("right"))
        .where("left != right")
        .distinct()
        .localCheckpoint()
    )
    return joined(stars, stars.count()).toDF("repository_id", "component")


def _shared(held: DataFrame, edges: DataFrame) -> DataFrame:
    """(repository_id, shared, shared_bytes, common): documents and bytes that other repositories hold too.

    `common` counts the shared documents with a text too common for pairing all its holders.
    """
    common = F.when(F.col("common"), F.col("documents"))
    return (
        held.join(reach(held, edges.select("left", "right")), "text_id")
        .groupBy("repository_id")
        .agg(
            F.sum("documents").alias("shared"),
            F.sum("bytes").alias("shared_bytes"),
            F.sum(common).alias("common"),
        )
    )


def _duplicates(found: DataFrame, repository_edges: DataFrame, share: float) -> DataFrame:
    """(worse, better, share, rank): a duplicate, its better repository and the latter's rank."""  # 3, 4
    pairs = repository_edges
    for side in ("left", "right"):
        of_side = [F.col(name).alias(f"{side}_{name}") for name in ("topic", "rank", "pinned")]
        pairs = pairs.join(found.select(F.col("repository_id").alias(side), *of_side), side)
    left_is_worse = F.col("left_rank") > F.col("right_rank")

    def whichever(of_left_if_worse: str, otherwise: str) -> Column:
        return F.when(left_is_worse, F.col(of_left_if_worse)).otherwise(F.col(otherwise))

    return (
        pairs.where(F.col("left_topic").eqNullSafe(F.col("right_topic")))
        .where(~whichever("left_pinned", "right_pinned"))
        .select(
            whichever("left", "right").alias("worse"),
            whichever("right", "left").alias("better"),
            whichever("left_share", "right_share").alias("share"),
            F.least("left_rank", "right_rank").alias("rank"),
        )
        .where(F.col("share") >= share)
    )


def _decided(found: DataFrame, duplicates: DataFrame) -> DataFrame:
    """(repository_id, stays, duplicate_of, share) of repositories that are or have a duplicate."""
    edges = duplicates.select(
        F.col("worse").alias("left"), F.col("better").alias("right"), F.col("share").alias("similarity")
    )
    ranks = found.select(F.col("repository_id").alias("doc_id"), "rank")
    stays = (
        in_components(ranks, edges, joined(edges, edges.count()))
        .select("component", "doc_id", "other", "similarity")
        .mapInArrow(partial(udf.decide, keep="independent_set"), _DECIDED)
        .select("repository_id", "stays")
        .localCheckpoint()
    )
    # The removed repository may share more with a worse one that stays; only a better one is evidence.
    kept = stays.where("stays").select(F.col("repository_id").alias("better"))
    first = F.struct(-F.col("share"), F.col("rank"))
    named = duplicates.join(kept, "better").groupBy(F.col("worse").alias("repository_id"))
    evidence = named.agg(F.min_by(F.struct("better", "share"), first).alias("named"))
    return stays.join(evidence, "repository_id", "left").select(
        "repository_id",
        "stays",
        F.col("named.better").alias("duplicate_of"),
        F.col("named.share").alias("share"),
    )
