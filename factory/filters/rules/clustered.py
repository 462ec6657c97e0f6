"""Rules that read verdicts on clusters: a document shares the verdict of its cluster.

A cluster that stays hard to predict for a model that has read half of it is noise, one that becomes too easy
repeats itself (`factory.clusters.verdicts`). The limits belong to the clusters, so each document has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.filters.joined_rule import JoinedRule
from factory.filters.limits import AtMost
from factory.filters.rule import Kind
from factory.lake import names
from factory.models.sampling import unit_interval

CLUSTER = "cluster"  # the part of the signals with the values of both rules, and the column with the number
NOISE, NOISE_LIMIT = "cluster_noise", "cluster_noise_limit"
REPETITION, RATE = "cluster_repetition", "cluster_repetition_rate"


class ClusterRule(JoinedRule):
    """A rule by the verdict on a document's cluster.

    `clusters` and `verdicts` name the datasets with the clusters and with the verdicts on them.
    """

    limit = AtMost(inf)

    def __init__(self, clusters: str, verdicts: str) -> None:
        self.reads = {
            "clusters": names.clusters(clusters),
            "verdicts": names.clusters(verdicts, "verdicts"),
        }

    @property
    def part(self) -> str:
        return CLUSTER

    @property
    def signals(self) -> Mapping[str, Kind]:
        return dict.fromkeys((CLUSTER, NOISE, NOISE_LIMIT, REPETITION, RATE), "number")

    def values(self, documents: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:  # noqa: ARG002
        """Return the cluster of each document, its loss and rate, and the draw that the rate is for."""
        is_noise = (F.col("verdict") == "discard") & (F.col("loss_after") > F.col("high"))
        of_cluster = tables["verdicts"].select(
            "cluster",
            F.col("loss_after").alias(NOISE),
            F.col("high").alias(NOISE_LIMIT),
            F.when(is_noise, 1.0).otherwise(F.col("rate")).alias(RATE),  # the loss is its reason
        )
        clusters = tables["clusters"].select("doc_id", "cluster", unit_interval(CLUSTER).alias(REPETITION))
        values = clusters.join(of_cluster, "cluster", "left")
        return values.withColumn(CLUSTER, F.col("cluster").cast("double"))


class ClusterNoise(ClusterRule):
    """Bits per byte of the document's cluster, for a model that has read half of the cluster."""

    name, unit, ceiling = NOISE, "bits per byte", NOISE_LIMIT


class ClusterRepetition(ClusterRule):
    """The document's draw between 0 and 1, where its cluster keeps the draws up to a rate."""

    name, unit, ceiling = REPETITION, "draw", RATE
