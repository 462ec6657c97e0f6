"""The part of clusters: `clusters` and `balance` of a round, and the distribution of a balanced dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from factory.clusters.balance_options import BalanceOptions, require_fields
from factory.clusters.checkpoint import parse_checkpoint
from factory.clusters.embedding import parse_embedder
from factory.clusters.options import ClusterOptions
from factory.errors import ConfigurationError
from factory.filters.documents_table import documents_table
from factory.filters.rounds import Round
from factory.filters.rules.classified import Category
from factory.lake import names
from factory.orchestration.declare.filters import RoundStep
from factory.orchestration.declare.ingest_dataset import PartFields
from factory.orchestration.declare.ingest_facts import FactsFields
from factory.orchestration.declare.part import Declared, Entry, Part

if TYPE_CHECKING:
    from factory.orchestration.chain.filters_preparation import Preparation
    from factory.orchestration.chain.link import Link


class ClusterFields(PartFields):
    """The field of a round."""

    # No `| None`: `clusters:` with nothing behind it would leave the clusters out without a word.
    clusters: ClusterOptions = Field(
        default=None,  # type: ignore[assignment]
        description="cluster the documents, and judge each cluster by a model that reads it",
    )


class ClusterStep(RoundStep):
    """Clusters of the documents that the earlier rounds kept, with verdicts."""

    fields = ClusterFields

    def preparation(
        self,
        options: ClusterOptions,
        entry: Entry,
        earlier: Sequence[Round],  # noqa: ARG002
        file: Declared,
    ) -> Preparation:
        from factory.orchestration.chain.clusters import Clustering

        for part in names.CLUSTER_PARTS:
            if entry.name.endswith(f"_{part}"):
                raise ConfigurationError(
                    f"The clusters of `{entry.name}` would have the name of another table, the `{part}` of "
                    f"`{entry.name.removesuffix(f'_{part}')}`. Give the dataset another name."
                )
        checkpoint = parse_checkpoint(options, file.folder)
        if options.proxy is not None and checkpoint is None:
            documents_table(options.proxy)
        embedder = parse_embedder(options.embedder, file.folder)
        if options.dimensions is not None and embedder.kind != "lsa":
            raise ConfigurationError(
                f"`dimensions` is {options.dimensions}, but only `lsa` can choose: the vectors of "
                f"`{options.embedder}` have a number of dimensions already. Leave `dimensions` out."
            )
        return Clustering(options, embedder, entry.kind, checkpoint)


class BalanceFields(PartFields):
    """The field of a round."""

    balance: BalanceOptions = Field(
        default=None,  # type: ignore[assignment]
        description="keep a share of the documents of each category, for an even distribution",
    )


class BalanceStep(RoundStep):
    """Rates for the categories of the documents that the earlier rounds kept."""

    fields = BalanceFields

    def preparation(
        self,
        options: BalanceOptions,
        entry: Entry,
        earlier: Sequence[Round],
        file: Declared,  # noqa: ARG002
    ) -> Preparation:
        from factory.orchestration.chain.clusters_balance import Balancing

        has_facts = bool(entry.dataset_fields(FactsFields).facts)
        require_fields(options.over, [*_roles(earlier), *(["facts"] if has_facts else [])])
        return Balancing(options, has_facts)


def _roles(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield the roles of the tables that rounds make for later ones: clusters, and classifiers by name."""
    for declaration in rounds:
        if getattr(declaration, "clusters", None) is not None:
            yield "clusters"
        yield from (rule.name for rule in declaration.build() if isinstance(rule, Category))


class DistributionPart(Part):
    """The distribution of a balanced dataset, behind deduplication."""

    def links(self, entry: Entry, file: Declared) -> Sequence[Link]:  # noqa: ARG002
        from factory.orchestration.chain.clusters_balance import Distribution

        return [Distribution()]
