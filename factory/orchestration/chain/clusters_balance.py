"""The tables that balance a dataset between two rounds of filters, and its distribution behind deduplication.

    documents -> categories -> balance (rates)
    documents, filtered, deduplicated -> distribution

Rates last: documents that are added meet the rate of their category, and no delivery changes an earlier
decision. A run that selects `clusters.<dataset>_balance` sets the rates again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from pyspark.sql import DataFrame

from factory.clusters.balance import balance_table
from factory.clusters.balance_options import BalanceOptions, require_fields, table_of
from factory.clusters.categories import categories
from factory.clusters.distribution import distribution
from factory.filters.rule import Rule
from factory.filters.rules.balanced import BalanceRate
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.clusters import BALANCE, CATEGORIES, DISTRIBUTION
from factory.orchestration.chain.dedup.group import Deduplication
from factory.orchestration.chain.filters import FilterRound
from factory.orchestration.chain.filters_preparation import Preparation, Prepared
from factory.orchestration.chain.link import Chain, staying


@dataclass(frozen=True)
class Balancing(Preparation):
    """The rates of a dataset's categories, for the rule that reads them; `has_facts` if the dataset does."""

    options: BalanceOptions
    has_facts: bool = False

    def shares(self, base: Preparation, *, same_documents: bool) -> bool:
        return same_documents and self == base

    def rules(self, dataset: str, base: Prepared | None) -> Sequence[Rule]:
        return [BalanceRate(base.dataset if base else dataset)]

    def extend(self, chain: Chain, base: Prepared | None) -> Chain:
        if base:
            return chain
        tables = tables_of(chain, self.options.over, has_facts=self.has_facts)
        return chain.adding(self._categories(chain, tables), self._rates(chain, tables))

    def _categories(self, chain: Chain, tables: Mapping[str, TableName]) -> dg.AssetsDefinition:
        over, table = self.options.over, names.clusters(chain.dataset, "categories")
        argument_of = {role: f"of_{role}" for role in tables}

        @chain.table_asset(
            namespace=table.namespace,
            name=table.name,
            schema=CATEGORIES,
            upstream={**chain.upstream, **{argument_of[role]: table for role, table in tables.items()}},
            config={"over": list(over)},
            description=f"The category of every document by {', '.join(f'`{field}`' for field in over)}.",
            partitions_def=chain.partitions_def,
        )
        def of_documents(documents: DataFrame, **earlier: DataFrame) -> DataFrame:
            of_tables = {role: earlier[argument] for role, argument in argument_of.items()}
            return categories(staying(documents, earlier), over, of_tables)

        return of_documents

    def _rates(self, chain: Chain, tables: Mapping[str, TableName]) -> dg.AssetsDefinition:
        options, table = self.options, names.clusters(chain.dataset, "balance")
        cuts = _cuts(options.over, tables)

        @chain.table_asset(
            namespace=table.namespace,
            name=table.name,
            schema=BALANCE,
            upstream={"categories": names.clusters(chain.dataset, "categories"), **cuts},
            config={"target": repr(options.target), "size": options.size, "over": list(options.over)},
            description="The rate of each category: the share of its documents that stays.",
            lasting=True,
            until=list(cuts.values()),
        )
        def rates(categories: DataFrame, **_of_cuts: DataFrame) -> DataFrame:
            return balance_table(categories, options.over, options.target, options.size)

        return rates


@dataclass(frozen=True)
class Distribution:
    """Count the documents of each category before and after a balanced round, and behind deduplication."""

    def extend(self, chain: Chain) -> Chain:
        before, balancing = _balanced_round(chain)
        if balancing is None:
            return chain
        over = balancing.options.over
        tables = tables_of(before, over, has_facts=balancing.has_facts)
        argument_of = {role: f"of_{role}" for role in tables}
        table = names.clusters(chain.dataset, "distribution")
        verdicts = chain.extension(Deduplication).before.verdicts
        assert verdicts is not None  # a balanced round gives verdicts

        @chain.table_asset(
            namespace=table.namespace,
            name=table.name,
            schema=DISTRIBUTION,
            upstream={
                **before.upstream,
                **{argument_of[role]: table for role, table in tables.items()},
                "kept": verdicts,
                "deduplicated": chain.documents,
            },
            config={"over": list(over)},
            description="Documents by category before the dataset was balanced, after all rounds, and after "
            "deduplication.",
        )
        def by_category(
            documents: DataFrame, kept: DataFrame, deduplicated: DataFrame, **earlier: DataFrame
        ) -> DataFrame:
            of_tables = {role: earlier[argument] for role, argument in argument_of.items()}
            ids = kept.where("kept").select("doc_id"), deduplicated.select("doc_id")
            return distribution(staying(documents, earlier), over, of_tables, *ids)

        return chain.adding(by_category)


def _cuts(over: Sequence[str], tables: Mapping[str, TableName]) -> dict[str, TableName]:
    """Return the centers behind categories that are clusters: numbers of another cut mean other clusters."""
    levels = {"cell": "coarse", "cluster": "fine"}
    return {
        field: names.clusters(tables["clusters"].name, level)
        for field, level in levels.items()
        if field in over
    }


def _balanced_round(chain: Chain) -> tuple[Chain, Balancing | None]:
    """Return the chain before the round that balances, and the preparation of the round, if there is one."""
    for extension in chain.extensions:
        if isinstance(extension.link, FilterRound):
            for prepared in extension.link.preparations(extension.before.dataset):
                if isinstance(prepared.preparation, Balancing):
                    return extension.before, prepared.preparation
    return chain, None


def tables_of(chain: Chain, over: Sequence[str], *, has_facts: bool) -> Mapping[str, TableName]:
    """Return the tables for the fields `over` that documents lack, by role; raises ConfigurationError."""
    at_hand = {"facts": names.facts(chain.dataset)} if has_facts else {}
    for extension in chain.extensions:
        if isinstance(extension.link, FilterRound):
            at_hand |= extension.link.tables(extension.before.dataset)
    require_fields(over, at_hand)
    roles = dict.fromkeys(role for field in over if (role := table_of(field)) is not None)
    return {role: at_hand[role] for role in roles}
