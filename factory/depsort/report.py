"""How well an order keeps dependencies: shares, broken edges and cycles, as DataFrames and as one dict.

What is broken lies in cycles: a repository without any is satisfied in full.
"""

from __future__ import annotations

from typing import TypedDict

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


class DependencySummary(TypedDict):
    """Figures over all repositories; shares are null where there is no edge."""

    n_edges: int
    n_broken_edges: int
    n_cycle_edges: int
    weight: float
    satisfied_edges_share: float | None
    satisfied_weight_share: float | None


class SymbolSummary(TypedDict):
    """How many rows of symbols resolved to what."""

    n_symbols: int
    n_internal: int
    n_external: int


def summarize_dependencies(dependencies: DataFrame) -> DependencySummary:
    """The figures of a table of dependencies; runs one Spark action."""
    row = dependencies.agg(
        F.count("*").alias("n_edges"),
        F.count_if(~F.col("satisfied")).alias("n_broken_edges"),
        F.count_if("in_cycle").alias("n_cycle_edges"),
        F.coalesce(F.sum("weight"), F.lit(0.0)).alias("weight"),
        F.avg(F.col("satisfied").cast("double")).alias("satisfied_edges_share"),
        (F.sum(F.when(F.col("satisfied"), F.col("weight")).otherwise(0.0)) / F.sum("weight")).alias(
            "satisfied_weight_share"
        ),
    ).head()
    assert row is not None
    return DependencySummary(**row.asDict())  # type: ignore[typeddict-item]


def summarize_symbols(symbols: DataFrame) -> SymbolSummary:
    """The figures of a table of symbols; runs one Spark action."""
    row = symbols.agg(
        F.count("*").alias("n_symbols"),
        F.count_if(F.col("resolution") == "internal").alias("n_internal"),
        F.count_if(F.col("resolution") == "external").alias("n_external"),
    ).head()
    assert row is not None
    return SymbolSummary(**row.asDict())  # type: ignore[typeddict-item]


def by_repository(dependencies: DataFrame) -> DataFrame:
    """repository, n_edges, n_broken_edges, weight, satisfied_weight_share of repositories with edges."""
    satisfied = F.when(F.col("satisfied"), F.col("weight")).otherwise(0.0)
    return dependencies.groupBy("repository").agg(
        F.count("*").alias("n_edges"),
        F.count_if(~F.col("satisfied")).alias("n_broken_edges"),
        F.sum("weight").alias("weight"),
        (F.sum(satisfied) / F.sum("weight")).alias("satisfied_weight_share"),
    )


def broken_edges(dependencies: DataFrame) -> DataFrame:
    """The edges whose dependency stands after its dependent, the heaviest first."""
    return dependencies.where(~F.col("satisfied")).orderBy(F.desc("weight"), "doc_id", "depends_on")


def cycles(in_order: DataFrame) -> DataFrame:
    """The cycles, largest first: repository, cycle, n_files, files (their paths in order)."""
    return (
        in_order.where(F.col("cycle_size") > 1)
        .groupBy("repository", "cycle")
        .agg(
            F.count("*").alias("n_files"),
            F.array_sort(F.collect_list(F.struct("place", "path"))).getField("path").alias("files"),
        )
        .orderBy(F.desc("n_files"), "repository", "cycle")
    )
