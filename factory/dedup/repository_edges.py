"""Pairs of repositories where one holds nearly all of the other, with exact counts of shared documents.

A document is shared with a repository that holds its text, or a text that a verified edge joins to it.
Counting every two repositories that share anything would make a clique of each license, so candidate pairs
come first, and only pairs that can matter are counted:

1. A text is rare if up to `PAIR_REPOSITORIES` repositories hold it or a similar one. All pairs of these
   repositories are candidates, and the rare texts they share are counted at once.
2. A more common text makes no clique: each of its m holders is paired with the `BEST_HOLDERS` best by
   priority. Who stays is decided in that order, so each of a thousand forks is paired with the repositories
   that could stay in its place.
3. A pair is dropped unless one side could reach `share` if all of its common texts were shared.
4. For the remaining pairs common texts are counted exactly: each edge is looked up from its end of fewer
   edges, so that a text with a hundred thousand variants costs no more than another.

So shares are exact, and common texts alone add no pair that cannot be a pair of duplicates. A duplicate is
missed if all its shared texts are common and its source is among the best holders of none of them:
`dedup.<group>_repositories` counts such documents for each repository.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from factory.dedup.edges import similar
from factory.dedup.priority import Priority
from factory.dedup.repository_nodes import least_share, repositories_of, texts_held
from factory.frozen_model import FrozenModel

PAIR_REPOSITORIES = 64
"""Most holders of a text for which all pairs of holders are candidates: 2,016 pairs."""

BEST_HOLDERS = 16
"""Best holders of a more common text, with which all its other holders are paired."""

_SIDES = ("left", "right")


class RepositoryEdgeConfig(FrozenModel):
    """The settings that decide REPOSITORY_EDGES, apart from documents and edges."""

    threshold: float
    priority: tuple[Priority, ...]
    share: float
    pinned: tuple[str, ...]


def repository_edges(
    documents: DataFrame, signatures: DataFrame, edges: DataFrame, config: RepositoryEdgeConfig
) -> DataFrame:
    """Every pair with a side that shares at least `config.share`, left id below right: REPOSITORY_EDGES.

    Runs jobs when called, to compute inputs of several readers once and to count common texts.
    """
    held = texts_held(documents, signatures).localCheckpoint()
    repositories = repositories_of(documents, held, config.priority, config.pinned).localCheckpoint()
    pairs = similar(edges, config.threshold).select("left", "right")
    around = _around(held, pairs)
    reached = reach(held, pairs).localCheckpoint()
    rare = reached.where("NOT common").select("text_id")
    common = reached.where("common").select("text_id").localCheckpoint()
    counted = _rare_texts(held, rare, around)
    of_common = held.join(common, "text_id").localCheckpoint()
    any_common = not of_common.isEmpty()
    if any_common:
        best = _best_holders(held.join(repositories.select("repository_id", "rank"), "repository_id"))
        counted = counted.union(_pairs_with_the_best(of_common, common, around, best))
    possible = _possible(_by_pair(counted), repositories, of_common, config.share).localCheckpoint()
    if any_common:
        possible = _with_common(possible, held, of_common, pairs)
    return _shares(possible).where(F.greatest("left_share", "right_share") >= config.share)


def reach(held: DataFrame, pairs: DataFrame) -> DataFrame:
    """(text_id, common) of the texts that two repositories or more hold, or hold a similar text of.

    A text is common if it and its similar texts have more than `PAIR_REPOSITORIES` holders; a repository
    counts once for each of these texts.
    """
    of_text = held.groupBy("text_id").agg(
        F.count("*").alias("holders"),
        F.min("repository_id").alias("first"),
        F.max("repository_id").alias("last"),
    )
    return (
        _around(held, pairs)
        .join(of_text.withColumnRenamed("text_id", "other"), "other")
        .groupBy("text_id")
        .agg(F.sum("holders").alias("holders"), F.min("first").alias("first"), F.max("last").alias("last"))
        .where("first != last")
        .select("text_id", (F.col("holders") > PAIR_REPOSITORIES).alias("common"))
    )


def _around(held: DataFrame, pairs: DataFrame) -> DataFrame:
    """(text_id, other): each text with itself and its similar texts."""
    selves = held.select("text_id", F.col("text_id").alias("other")).distinct()
    return selves.union(pairs.select("left", "right")).union(pairs.select("right", "left"))


def _rare_texts(held: DataFrame, rare: DataFrame, around: DataFrame) -> DataFrame:
    """(of, within, documents, bytes): the rare texts that a repository shares with another."""  # 1
    within = held.select(F.col("text_id").alias("other"), F.col("repository_id").alias("within"))
    reached = rare.join(around, "text_id").join(within, "other").select("text_id", "within").distinct()
    return (
        held.withColumnRenamed("repository_id", "of")
        .join(reached, "text_id")
        .where("of != within")
        .groupBy("of", "within")
        .agg(F.sum("documents").alias("documents"), F.sum("bytes").alias("bytes"))
    )


def _best_holders(ranked: DataFrame) -> DataFrame:
    """(other, within, rank): the best holders of each text."""
    within = F.col("repository_id").alias("within")
    return _best_of_text(ranked).select(F.col("text_id").alias("other"), within, "rank")


def _best_of_text(ranked: DataFrame) -> DataFrame:
    position = F.row_number().over(Window.partitionBy("text_id").orderBy("rank"))
    return ranked.withColumn("position", position).where(F.col("position") <= BEST_HOLDERS)


def _pairs_with_the_best(
    of_common: DataFrame, common: DataFrame, around: DataFrame, best: DataFrame
) -> DataFrame:
    """(of, within, documents, bytes): holders of a common text with its best holders, not counted."""  # 2
    reached = (
        common.join(around, "text_id").join(best, "other").select("text_id", "within", "rank").distinct()
    )
    zero = F.lit(0).cast("long")
    return (
        of_common.select("text_id", F.col("repository_id").alias("of"))
        .join(_best_of_text(reached), "text_id")
        .where("of != within")
        .select("of", "within", zero.alias("documents"), zero.alias("bytes"))
        .distinct()
    )


def _by_pair(counted: DataFrame) -> DataFrame:
    """The counts of both sides in one row per pair."""

    def of_side(name: str, is_left: Column) -> list[Column]:
        return [
            F.sum(F.when(is_left if side == "left" else ~is_left, F.col(name)).otherwise(0)).alias(
                f"{side}_{name}"
            )
            for side in _SIDES
        ]

    is_left = F.col("of") < F.col("within")
    return counted.groupBy(
        F.least("of", "within").alias("left"), F.greatest("of", "within").alias("right")
    ).agg(*of_side("documents", is_left), *of_side("bytes", is_left))


def _possible(pairs: DataFrame, repositories: DataFrame, of_common: DataFrame, share: float) -> DataFrame:
    """The pairs that can reach the share, with the totals of each side."""  # 3
    common = of_common.groupBy("repository_id").agg(
        F.sum("documents").alias("common"), F.sum("bytes").alias("common_bytes")
    )
    sizes = (
        repositories.select("repository_id", "compared", "compared_bytes")
        .join(common, "repository_id", "left")
        .fillna(0)
    )
    for side in _SIDES:
        of_side = [F.col(name).alias(f"{side}_{name}") for name in sizes.columns[1:]]
        pairs = pairs.join(sizes.select(F.col("repository_id").alias(side), *of_side), side)
    most = [
        least_share(
            F.col(f"{side}_documents") + F.col(f"{side}_common"),
            F.col(f"{side}_bytes") + F.col(f"{side}_common_bytes"),
            f"{side}_",
        )
        for side in _SIDES
    ]
    return pairs.where(F.greatest(*most) >= share)


def _with_common(possible: DataFrame, held: DataFrame, of_common: DataFrame, pairs: DataFrame) -> DataFrame:
    """`possible` with the common texts added to its counts."""  # 4
    asked = possible.select(F.col("left").alias("of"), F.col("right").alias("within")).union(
        possible.select("right", "left")
    )
    mine = of_common.withColumnRenamed("repository_id", "of")
    theirs = held.select(F.col("repository_id").alias("within"), F.col("text_id").alias("other"))
    outwards = _outwards(pairs).localCheckpoint()
    selves = of_common.select("text_id", F.col("text_id").alias("other")).distinct()
    from_mine = (
        asked.join(mine, "of")
        .join(outwards.union(selves), "text_id")
        .join(theirs, ["within", "other"], "left_semi")
    )
    from_theirs = (
        asked.join(theirs, "within")
        .join(outwards.select(F.col("text_id").alias("other"), F.col("other").alias("text_id")), "other")
        .join(mine, ["of", "text_id"])
    )
    columns = ("of", "within", "text_id", "documents", "bytes")
    shared = _by_pair(from_mine.select(*columns).union(from_theirs.select(*columns)).distinct())
    counts = [f"{side}_{name}" for side in _SIDES for name in ("documents", "bytes")]
    more = shared.select("left", "right", *(F.col(name).alias(f"more_{name}") for name in counts))
    return possible.join(more, ["left", "right"], "left").withColumns(
        {name: F.col(name) + F.coalesce(f"more_{name}", F.lit(0)) for name in counts}
    )


def _outwards(pairs: DataFrame) -> DataFrame:
    """(text_id, other): each edge once, from its end of fewer edges."""
    degrees = pairs.select(F.explode(F.array("left", "right")).alias("text_id")).groupBy("text_id").count()
    for side in _SIDES:
        of_side = degrees.select(F.col("text_id").alias(side), F.col("count").alias(f"{side}_degree"))
        pairs = pairs.join(of_side, side)
    fewer = F.col("left_degree") <= F.col("right_degree")
    return pairs.select(
        F.when(fewer, F.col("left")).otherwise(F.col("right")).alias("text_id"),
        F.when(fewer, F.col("right")).otherwise(F.col("left")).alias("other"),
    )


def _shares(pairs: DataFrame) -> DataFrame:
    shares = {
        f"{side}_share": least_share(f"{side}_documents", f"{side}_bytes", f"{side}_") for side in _SIDES
    }
    counts = [f"{side}_{name}" for name in ("documents", "bytes", "share") for side in _SIDES]
    return pairs.withColumns(shares).select(
        "left", "right", *counts, F.lit(None).cast("string").alias("partition")
    )
