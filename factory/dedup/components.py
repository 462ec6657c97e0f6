"""Connected components of the similarity graph, in Spark.

One task finds the components of up to `ONE_TASK_EDGES` edges by union-find. Larger graphs take the
alternating algorithm of Kiveris et al. (2014): every document points to its least known neighbour, and large
stars and small stars alternate until nothing moves, in O(log^2 n) rounds; the number of edges never grows.
Every partition first contracts its own edges to a forest. A component is named by its least document id; a
document without an edge is a component of its own.
"""

from __future__ import annotations

import logging

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from factory.dedup.edges import similar
from spark_udfs.dedup import components as udf

log = logging.getLogger(__name__)

ONE_TASK_EDGES = 5_000_000
"""Edges that one task joins in about 1 GB of memory; both ways give the same components."""

_LABELS = "doc_id string, component string"


def components(edges: DataFrame, signatures: DataFrame, threshold: float) -> DataFrame:
    """The component of every row of `signatures`, by the edges that reach `threshold`: COMPONENTS.

    Runs a job when called, to count the edges of all thresholds: Iceberg knows their number without reading
    them. Above `ONE_TASK_EDGES` it runs two jobs per round.
    """
    return (
        signatures.select("doc_id", "partition")
        .join(joined(similar(edges, threshold), edges.count()), "doc_id", "left")
        .select("doc_id", F.coalesce("component", "doc_id").alias("component"), "partition")
    )


def joined(edges: DataFrame, at_most: int) -> DataFrame:
    """(doc_id, component) of every document in an edge (left, right); there are `at_most` so many edges."""
    ends = edges.select("left", "right")
    return one_task(ends) if at_most <= ONE_TASK_EDGES else alternating(ends)


def one_task(edges: DataFrame) -> DataFrame:
    """(doc_id, component) of every document in an edge (left, right), by union-find in one task."""
    return edges.coalesce(1).mapInArrow(udf.components, _LABELS)


def alternating(edges: DataFrame) -> DataFrame:
    """(doc_id, component) of every document in an edge (left, right), by alternating stars.

    1. Contract the edges of each partition to stars around its least ids.
    2. Large-star: every document hands its greater neighbours to its least one.
    3. Small-star: every document hands its lesser neighbours, and itself, to the least of them.
    4. Repeat 2 and 3 until the edges no longer change: stars around the least id of each component.
    """
    contracted = edges.mapInArrow(udf.components, _LABELS)  # 1
    stars = contracted.where("doc_id != component").toDF("node", "least").distinct().localCheckpoint()
    now = _state(stars)
    for number in range(1, 1000):
        previous = now
        stars = _small_star(_large_star(stars)).localCheckpoint()  # 2, 3; cuts the lineage
        now = _state(stars)
        log.info("components: round %d leaves %d edges", number, now.n_edges)
        if now == previous:  # 4
            roots = stars.select(F.col("least").alias("node"), "least")
            return stars.union(roots).distinct().toDF("doc_id", "component")
    raise AssertionError("alternating stars did not converge")


def _large_star(stars: DataFrame) -> DataFrame:
    both = stars.union(stars.select("least", "node")).toDF("node", "other")
    least = both.groupBy("node").agg(F.least("node", F.min("other")).alias("least"))
    return (
        both.where("other > node")
        .join(least, "node")
        .select(F.col("other").alias("node"), "least")
        .distinct()
    )


def _small_star(stars: DataFrame) -> DataFrame:
    least = stars.groupBy("node").agg(F.min("least").alias("first"))
    handed = (
        stars.join(least, "node")
        .where("least != first")
        .select(F.col("least").alias("node"), F.col("first").alias("least"))
    )
    return handed.union(least).distinct()


def _state(stars: DataFrame) -> Row:
    """A count and a checksum that differ when the edges do."""
    return stars.agg(
        F.count("*").alias("n_edges"), F.bit_xor(F.xxhash64("node", "least")).alias("check")
    ).collect()[0]
