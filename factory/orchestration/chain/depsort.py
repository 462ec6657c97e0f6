"""The link that sorts the files of each repository by their dependencies."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from factory.depsort.stage import dependencies, sorted_documents, symbols
from factory.lake import names
from factory.lake.schemas.depsort import DEPENDENCIES, SORTED, SYMBOLS
from factory.orchestration.chain.link import Chain, staying
from factory.orchestration.table.checks import aggregate

UNIQUE_POSITIONS = aggregate(
    "unique_positions",
    # A document without a repository counts by itself, and `count(DISTINCT ...)` ignores nulls.
    "count(1) - count(DISTINCT coalesce(repository, doc_id), coalesce(revision, ''), position)",
    "No two documents of a revision of a repository share a position.",
    "repository",
    "revision",
    "doc_id",
    "position",
)


@dataclass(frozen=True)
class DependencyOrder:
    """Sort by dependency: symbols, dependencies, and the documents in their order."""

    def extend(self, chain: Chain) -> Chain:
        dataset = chain.dataset
        symbols_table, dependencies_table = (
            names.depsort(dataset, part) for part in ("symbols", "dependencies")
        )

        @chain.table_asset(
            namespace="depsort",
            name=symbols_table.name,
            schema=SYMBOLS,
            upstream=chain.upstream,
            description=f"The definitions, references and imports of every file of `{dataset}`, and where "
            "they resolve.",
        )
        def file_symbols(documents: DataFrame, **verdicts: DataFrame) -> DataFrame:
            return symbols(staying(documents, verdicts))

        @chain.table_asset(
            namespace="depsort",
            name=dependencies_table.name,
            schema=DEPENDENCIES,
            description=f"The dependencies between files of `{dataset}`, and whether the order satisfies "
            "each.",
            upstream={**chain.upstream, "symbols": symbols_table},
        )
        def file_dependencies(documents: DataFrame, symbols: DataFrame, **verdicts: DataFrame) -> DataFrame:
            return dependencies(staying(documents, verdicts), symbols)

        @chain.table_asset(
            namespace="sorted",
            name=dataset,
            schema=SORTED,
            description=f"The documents of `{dataset}` with their position in their repository, dependencies "
            "first.",
            upstream={**chain.upstream, "dependencies": dependencies_table},
            checks=[UNIQUE_POSITIONS],
        )
        def in_dependency_order(
            documents: DataFrame, dependencies: DataFrame, **verdicts: DataFrame
        ) -> DataFrame:
            return sorted_documents(staying(documents, verdicts), dependencies)

        return chain.adding(
            file_symbols,
            file_dependencies,
            in_dependency_order,
            documents=names.sorted_table(dataset),
            verdicts=None,
            further={**chain.further, "dependencies": dependencies_table},
        )
