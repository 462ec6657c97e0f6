"""Files of each repository in dependency order: symbols, the edges they make, and a position for each file.

Every revision of a repository is sorted by itself, because revisions share their paths.

`symbols` extracts facts where the documents lie and groups only these small rows by repository;
`dependencies` and `sorted_documents` group ids, paths and weights. Spark reads text twice, for symbols and to
write it in order, and never passes it to Python in groups. A document without a repository has position 0 and
no edges.

Invariant: `dependencies` and `sorted_documents` compute the same order from the same weights
(`spark_udfs.depsort.graph`), so an edge is `satisfied` exactly if `position` says so.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.depsort import DEPENDENCIES, SORTED, SYMBOLS
from spark_udfs.depsort import extract as extraction
from spark_udfs.depsort import graph, table


def symbols(documents: DataFrame) -> DataFrame:
    """Every definition, import and reference of the documents in a known language, resolved: SYMBOLS.

    Reads columns `doc_id, repository, revision, path, key, language, text, partition` of RAW documents.
    """
    facts = documents.select(
        "doc_id",
        F.coalesce("repository", "doc_id").alias("repository"),
        "revision",
        _path().alias("path"),
        "language",
        "text",
        "partition",
    ).mapInArrow(extraction.extract, from_arrow_schema(extraction.FACTS))
    return facts.groupBy(*REPOSITORY).applyInArrow(table.resolve, from_arrow_schema(SYMBOLS.columns))


def dependencies(documents: DataFrame, symbols: DataFrame) -> DataFrame:
    """Every dependency between two documents, its weight, and whether the order satisfies it: DEPENDENCIES.

    `symbols` is the result of `symbols(documents)`.
    """
    contributions = (
        symbols.where(F.col("resolved_to").isNotNull())
        .select(*REPOSITORY, "doc_id", "kind", F.inline(F.arrays_zip("resolved_to", "weights")))
        .select(
            *REPOSITORY,
            "doc_id",
            "kind",
            F.col("resolved_to").alias("depends_on"),
            F.col("weights").alias("weight"),
        )
    )
    return (
        _files(documents)
        .groupBy(*REPOSITORY)
        .cogroup(contributions.groupBy(*REPOSITORY))
        .applyInArrow(graph.edges, from_arrow_schema(DEPENDENCIES.columns))
    )


def sorted_documents(documents: DataFrame, dependencies: DataFrame) -> DataFrame:
    """The documents with their position in their revision of a repository, dependencies first: SORTED.

    `dependencies` is the result of `dependencies(documents, symbols)`.
    """
    positions = (
        _files(documents)
        .groupBy(*REPOSITORY)
        .cogroup(dependencies.select(*graph.WEIGHTED).groupBy(*REPOSITORY))
        .applyInArrow(graph.positions, from_arrow_schema(graph.POSITIONS))
    )
    alone = {"position": 0, "cycle": 0, "cycle_size": 1}
    found = documents.join(positions, "doc_id", "left")
    return found.select(
        *(
            F.coalesce(name, F.lit(alone[name]).cast("long")).alias(name) if name in alone else F.col(name)
            for name in SORTED.names
        )
    )


def _files(documents: DataFrame) -> DataFrame:
    """The columns that an order reads, of the documents that belong to a repository."""
    return documents.where(F.col("repository").isNotNull()).select(
        *REPOSITORY, "doc_id", _path().alias("path"), "partition"
    )


def _path() -> Column:
    return F.coalesce("path", "key")
