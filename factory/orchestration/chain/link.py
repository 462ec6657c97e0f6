"""A dataset's chain of assets, as a fold over links: each reads the documents so far and adds its tables.

    chain = linked(Chain.from_raw("web"), [Filters([Round(rules=["gopher_quality"])])])
    chain.documents, chain.verdicts    # raw.web, filtered.web
    group = dedup_group("web", [chain], kind="prose")
    chain = linked(chain, [Deduplication(group), Packing("tokenizer")])
    chain.documents, chain.verdicts    # deduplicated.web, None
    assets = [*group.assets, *chain]

No link knows which links came before it. `refine` makes the usual chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import dagster as dg
from pyspark.sql import DataFrame

from factory.lake import names
from factory.lake.names import TableName
from factory.lake_spark.documents import kept_documents
from factory.orchestration.groups import dataset_group
from factory.orchestration.table.table_asset import table_asset

VERDICTS = "verdicts"  # the argument of an asset that gets the verdicts on its documents, if there are any


class Link(Protocol):
    """One part of a dataset's chain."""

    def extend(self, chain: Chain) -> Chain:
        """Return `chain` with the link's assets; a link may replace the documents and the verdicts.

        Raises ConfigurationError if the link does not fit the chain.
        """


@runtime_checkable
class Links(Protocol):
    """Several links under one name, such as rounds of filters; others can stand between them."""

    def links(self) -> Sequence[Link]:
        """Return the links in order."""


L = TypeVar("L", bound=Link)


@dataclass(frozen=True)
class Extension:
    """A link of a chain, and the chain as it was before."""

    link: Link
    before: Chain


@dataclass(frozen=True)
class Chain:
    """The assets of a dataset so far, and the tables for the next link. Iterating gives the assets.

    `documents` is the table of whole documents. `verdicts` is the table that says which of them stay (`kept`
    by `doc_id`), None if all do. `further` are other tables that a later link may read, by their role, such
    as `dependencies`. With `partitions_def` raw documents have partitions, and so have the tables of links
    that look at one document at a time. `graph_group` is the group of the next tables in Dagster's graph, or
    None before deduplication.
    """

    dataset: str
    documents: TableName
    verdicts: TableName | None = None
    further: Mapping[str, TableName] = field(default_factory=dict)
    assets: tuple[dg.AssetsDefinition, ...] = ()
    extensions: tuple[Extension, ...] = ()
    owners: tuple[str, ...] = ()
    partitions_def: dg.PartitionsDefinition[str] | None = None
    graph_group: str | None = None

    @classmethod
    def from_raw(
        cls,
        dataset: str,
        owners: Iterable[str] = (),
        partitions_def: dg.PartitionsDefinition[str] | None = None,
    ) -> Chain:
        """The chain that begins at the raw documents of `dataset`.

        Raises ConfigurationError for an invalid name.
        """
        documents = names.raw(names.dataset(dataset))
        return cls(dataset, documents, owners=tuple(owners), partitions_def=partitions_def)

    def __iter__(self) -> Iterator[dg.AssetsDefinition]:
        return iter(self.assets)

    @property
    def upstream(self) -> dict[str, TableName]:
        """The tables of an asset that reads the documents: an argument `documents`, perhaps `verdicts`.

        `staying` joins the two in the asset's function.
        """
        verdicts = {VERDICTS: self.verdicts} if self.verdicts else {}
        return {"documents": self.documents, **verdicts}

    def table_asset(self, **options: Any) -> Callable[..., dg.AssetsDefinition]:
        """`table_asset` for the dataset, with its owners, in the group that the chain has reached."""
        return table_asset(
            asset_group=dataset_group(self.dataset),
            graph_group=self.graph_group,
            owners=self.owners,
            **options,
        )

    def adding(self, *assets: dg.AssetsDefinition, **changes: Any) -> Chain:
        """Return the chain with further assets, and with `changes` of its fields."""
        return replace(self, assets=(*self.assets, *assets), **changes)

    def for_variant(self, dataset: str) -> Chain:
        """Return the chain of a variant that reads the tables of this one and begins to differ here."""
        return replace(self, dataset=dataset, assets=())

    def extension(self, kind: type[Link]) -> Extension:
        """Return the extension by the chain's first link of a class, which the chain must have."""
        return next(extension for extension in self.extensions if isinstance(extension.link, kind))

    def link(self, kind: type[L]) -> L:
        """Return the chain's first link of a class, which the chain must have."""
        link = self.extension(kind).link
        assert isinstance(link, kind)
        return link

    def links_after(self, kind: type[Link]) -> list[Link]:
        """Return the links that follow the chain's first link of a class."""
        links = [extension.link for extension in self.extensions]
        return links[links.index(self.link(kind)) + 1 :]


def linked(chain: Chain, links: Iterable[Link | Links]) -> Chain:
    """Return `chain` extended by each link in turn; raises ConfigurationError for one that does not fit."""
    for part in links:
        for link in part.links() if isinstance(part, Links) else [part]:
            extended = link.extend(chain)
            chain = replace(extended, extensions=(*chain.extensions, Extension(link, chain)))
    return chain


def staying(documents: DataFrame, upstream: Mapping[str, DataFrame]) -> DataFrame:
    """Return the documents that the verdicts in an asset's other arguments keep, or all without verdicts."""
    return kept_documents(documents, upstream[VERDICTS]) if VERDICTS in upstream else documents
