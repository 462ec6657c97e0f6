"""Dedup groups, which compare the documents of several datasets; and the link that drops duplicates.

    bags -> vocabulary -> signatures -> buckets -> edges -> components -> decisions
                                     -> recall  -> largest_buckets
                                                   edges -> sweep

With `repositories`, whole repositories are compared first, and the documents that remain are decided after:

    edges -> repository_edges -> repositories -> decisions

Each asset body is one call of the stage `factory.dedup`, with the settings that its table depends on. A group
compares its documents once: `dedup_variant` decides at another threshold of the sweep, or by another keep
rule, with components and decisions of its own. A run that keeps unchanged tables keeps the vocabulary while
the group grows, so known texts keep their signatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.config import DedupConfig
from factory.dedup.decisions import Keep, deduplicated
from factory.dedup.repository_config import RepositoryConfig
from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.dedup import DEDUPLICATED
from factory.orchestration.chain.dedup.comparison import comparison
from factory.orchestration.chain.dedup.decisions import deciding
from factory.orchestration.chain.dedup.parts import Declaring, members_apart
from factory.orchestration.chain.dedup.repositories import topics_by_hand
from factory.orchestration.chain.link import Chain
from factory.orchestration.chain.texts import Member, Quality, Texts
from factory.orchestration.groups import comparison_group, packed_group

Kind = Literal["prose", "code"]


@dataclass(frozen=True)
class DedupGroup:
    """Datasets that are deduplicated together, and the assets that deduplicate them.

    `texts` are the documents that the group compares.
    """

    name: str
    kind: Kind
    texts: Texts
    config: DedupConfig
    assets: tuple[dg.AssetsDefinition, ...]
    repositories: RepositoryConfig | None = None
    quality: Quality | None = None
    owners: tuple[str, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of its datasets, or of their variants."""
        return self.texts.datasets

    def member(self, dataset: str) -> Member:
        """Return the member of a dataset; raises ConfigurationError for a dataset outside the group."""
        for name, member in zip(self.datasets, self.texts.members, strict=False):  # references come last
            if name == dataset:
                return member
        raise ConfigurationError(
            f"Dedup group `{self.name}` does not hold `{dataset}`. It holds {', '.join(self.datasets)}: name "
            "the dataset there, or give another group."
        )


@dataclass(frozen=True)
class Deduplication:
    """Keep the documents that a group decided to keep."""

    group: DedupGroup

    def extend(self, chain: Chain) -> Chain:
        member = self.group.member(chain.dataset)
        if (member.documents, member.verdicts) != (chain.documents, chain.verdicts):
            raise ConfigurationError(
                f"Dedup group `{self.group.name}` compares {_read(member)}, and the chain of "
                f"`{chain.dataset}` has {_read(chain)}. Declare the group with the chain in place of its "
                "name."
            )

        chain = replace(chain, graph_group=comparison_group(self.group.name))

        @chain.table_asset(
            namespace="deduplicated",
            name=chain.dataset,
            schema=DEDUPLICATED,
            upstream={
                "documents": chain.documents,
                "decisions": names.dedup(self.group.name, "decisions"),
            },
            description=f"The documents of `{chain.dataset}` that passed the filters and were kept among "
            f"their duplicates in dedup group `{self.group.name}`.",
        )
        def kept_among_duplicates(documents: DataFrame, decisions: DataFrame) -> DataFrame:
            return deduplicated(documents, decisions)

        return chain.adding(
            kept_among_duplicates,
            documents=names.deduplicated(chain.dataset),
            verdicts=None,
            graph_group=packed_group(chain.dataset),
        )


def dedup_group(
    name: str,
    datasets: Sequence[str | Chain],
    *,
    kind: Kind,
    config: DedupConfig | None = None,
    repositories: RepositoryConfig | None = None,
    quality: Quality | None = None,
    owners: Sequence[str] = (),
    against: Mapping[str, TableName] | None = None,
) -> DedupGroup:
    """Declare that `datasets` are deduplicated together, once; `refine` refers to the group.

    A dataset is a name, if its documents go through filters alone, or the chain of links before the group.
    With `repositories`, duplicate repositories are removed whole before documents are decided. The priority
    `quality` reads the values of the rule that `quality` names, by default the column of raw documents; a
    repository has their mean. `owners` are mail addresses and `team:name`s. `against` are tables of
    documents, by dataset, that the group compares with and does not decide on: what resembles one of these
    leaves. Raises ConfigurationError for no datasets, for a dataset named twice, for two variants of one
    dataset (their documents would be copies of each other), for repositories of prose, and for `against`
    together with repositories, or with another keep rule than `independent_set`, which would remove such
    documents.
    """
    references = [Member(dataset, table, reference=True) for dataset, table in (against or {}).items()]
    texts = Texts((*members_apart(name, datasets), *references))
    _check_against(name, references, config, repositories)
    if repositories is not None and kind != "code":
        raise ConfigurationError(
            f"Dedup group `{name}` is {kind}, which has no repositories. Leave `repositories` out."
        )
    config = config or DedupConfig(kind=kind)
    owners = tuple(owners)
    declare = Declaring(name, name, texts, owners)
    assets = [*comparison(declare, config), *deciding(_judging(declare, quality), config, repositories)]
    if repositories is not None and repositories.topics:
        assets.append(topics_by_hand(name, owners, repositories.topics))
    return DedupGroup(name, kind, texts, config, tuple(assets), repositories, quality, owners)


def _check_against(
    group: str,
    references: Sequence[Member],
    config: DedupConfig | None,
    repositories: RepositoryConfig | None,
) -> None:
    if references and repositories is not None:
        raise ConfigurationError(
            f"Dedup group `{group}` compares with `{references[0].dataset}`, whose repositories it cannot "
            "remove. Leave `repositories` or `against` out."
        )
    if references and config is not None and config.keep != "independent_set":
        raise ConfigurationError(
            f"Dedup group `{group}` compares with `{references[0].dataset}`, and the rule `{config.keep}` "
            "may remove documents of it. Use `keep: independent_set`, or leave `against` out."
        )


def _judging(declare: Declaring, quality: Quality | None) -> Declaring:
    """Return the declarations of tables that decide, which alone read how good documents are."""
    return replace(declare, texts=replace(declare.texts, quality=quality))


def dedup_variant(
    group: DedupGroup, name: str, threshold: float | None = None, keep: Keep | None = None
) -> DedupGroup:
    """Variant `name` of every dataset of `group`, decided at another threshold or by another keep rule.

    `threshold` and `keep` default to the group's. The variant shares the group's bags, signatures and edges;
    repositories are compared again, by the documents that are similar at its threshold. Raises
    ConfigurationError for a threshold that is not in the sweep, because large buckets have leaders for the
    thresholds of the sweep alone.
    """
    threshold = group.config.threshold if threshold is None else threshold
    if threshold not in group.config.thresholds:
        thresholds = ", ".join(f"{swept:g}" for swept in group.config.thresholds)
        raise ConfigurationError(
            f"Dedup group `{group.name}` has no decisions at {threshold:g}. It has edges for {thresholds}: "
            "add the threshold to its `sweep`."
        )
    others = tuple(swept for swept in group.config.thresholds if swept != threshold)
    config = group.config.changed(threshold=threshold, sweep=others, keep=keep or group.config.keep)
    texts = Texts(group.texts.members, name)
    declare = Declaring(names.variant(group.name, name), group.name, texts, group.owners)
    assets = deciding(_judging(declare, group.quality), config, group.repositories)
    return DedupGroup(
        declare.group, group.kind, texts, config, assets, group.repositories, group.quality, group.owners
    )


def _read(reader: Member | Chain) -> str:
    """Say which documents are read."""
    staying = f" that {reader.verdicts} keeps" if reader.verdicts else ""
    return f"the documents of {reader.documents}{staying}"
