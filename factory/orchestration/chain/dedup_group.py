"""A dedup group: datasets whose documents are compared with each other, and the assets that compare them.

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

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.bags import LARGE, bags
from factory.dedup.buckets import BucketConfig, buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig, Keep, decisions
from factory.dedup.edges import EdgeConfig, edges
from factory.dedup.largest_buckets import LargestBucketsConfig, largest_buckets
from factory.dedup.recall import RecallConfig, recall
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_decisions import decisions_without
from factory.dedup.signatures import SignatureConfig, signatures
from factory.dedup.sweep import SweepConfig, sweep
from factory.dedup.vocabulary import vocabulary
from factory.errors import ConfigurationError
from factory.lake import names
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.dedup import (
    BAGS,
    BUCKETS,
    COMPONENTS,
    DECISIONS,
    EDGES,
    LARGEST_BUCKETS,
    RECALL,
    SIGNATURES,
    SWEEP,
    VOCABULARY,
)
from factory.lake_spark.documents import kept_documents, located, of_datasets
from factory.orchestration.asset.checks import Check, alarm, holds
from factory.orchestration.asset.declaration import AssetResult
from factory.orchestration.asset.groups import bookkeeping, comparison_group
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup_repositories import (
    component_keeps_a_document,
    removal_is_similar_enough,
    removal_names_a_kept_document,
    repository_assets,
    topics_by_hand,
)
from factory.spark.session import NARROW_ROWS_PER_ARROW_BATCH, ROWS_PER_ARROW_BATCH

Kind = Literal["prose", "code"]
_COMPARED = ("bags", "vocabulary", "signatures", "buckets", "edges")
"""Parts that a variant shares with its group."""


@dataclass(frozen=True)
class DedupGroup:
    """Datasets that are deduplicated together, and the assets that deduplicate them."""

    name: str
    kind: Kind
    datasets: tuple[str, ...]
    config: DedupConfig
    assets: tuple[dg.AssetsDefinition, ...]
    repositories: RepositoryConfig | None = None
    owners: tuple[str, ...] = ()


def dedup_group(
    name: str,
    datasets: Sequence[str],
    *,
    kind: Kind,
    config: DedupConfig | None = None,
    repositories: RepositoryConfig | None = None,
    owners: Sequence[str] = (),
) -> DedupGroup:
    """Declare that `datasets` are deduplicated together, once; `refine` refers to the group.

    With `repositories`, duplicate repositories go as a whole before documents are decided. `owners` are mail
    addresses and `team:name`s. Raises ConfigurationError for no datasets, for a dataset named twice, for two
    variants of one dataset, whose documents would be copies of each other, and for repositories of prose.
    """
    _require_apart(name, datasets)
    if repositories is not None and kind != "code":
        raise ConfigurationError(
            f"Dedup group `{name}` is {kind}, which has no repositories. Leave `repositories` out."
        )
    chosen = config or DedupConfig(kind=kind)
    owners = tuple(owners)
    texts = _Texts(datasets)
    declare = partial(_declare, name, name, owners)
    report = partial(declare, asset_group=bookkeeping(comparison_group(name)))
    signing = chosen.part(SignatureConfig)
    bucketing = chosen.part(BucketConfig)
    comparing = chosen.part(EdgeConfig)
    largest = chosen.part(LargestBucketsConfig)
    sampling = chosen.part(RecallConfig)
    sweeping = chosen.part(SweepConfig)

    @declare("bags", BAGS, texts=texts, config={"lexer": chosen.lexer})
    def group_bags(previous: DataFrame | None, **upstream: DataFrame) -> DataFrame:
        """The bag of words of every distinct text."""
        return bags(texts.located(upstream), chosen.lexer, previous)

    @declare(
        "vocabulary",
        VOCABULARY,
        "bags",
        config={"lexer": chosen.lexer},  # the vocabulary is kept while its bags change a little
        growth=chosen.recount_growth,
        rows_per_batch=ROWS_PER_ARROW_BATCH,  # one part of the counts has 100 KB
    )
    def group_vocabulary(previous: DataFrame | None, bags: DataFrame) -> DataFrame:
        """Every token with its term and document frequency."""
        return vocabulary(located(bags, *LARGE), previous)

    @declare("signatures", SIGNATURES, "bags", "vocabulary", texts=texts, config=signing)
    def group_signatures(
        previous: DataFrame | None, bags: DataFrame, vocabulary: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """The weighted MinHash signature of every distinct text."""
        return signatures(texts.documents(upstream), located(bags, *LARGE), vocabulary, signing, previous)

    @declare("buckets", BUCKETS, "signatures", config=bucketing)
    def group_buckets(signatures: DataFrame) -> DataFrame:
        """The bucket of every signature in every band."""
        return buckets(signatures, bucketing, signing.version())

    @report("largest_buckets", LARGEST_BUCKETS, "buckets", texts=texts, config=largest)
    def group_largest_buckets(buckets: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The largest buckets, with the beginning of their best document."""
        return largest_buckets(texts.documents(upstream), buckets, largest)

    @declare(
        "edges",
        EDGES,
        "buckets",
        "signatures",
        "bags",
        "vocabulary",
        texts=texts,
        config=comparing,
        checks=[holds("every_edge_is_similar", f"similarity >= {chosen.thresholds[0]}", "similarity")],
    )
    def group_edges(
        buckets: DataFrame,
        signatures: DataFrame,
        bags: DataFrame,
        vocabulary: DataFrame,
        **upstream: DataFrame,
    ) -> DataFrame:
        """The pairs of documents whose exact similarity reaches the lowest threshold."""
        documents, bags = texts.documents(upstream), located(bags, *LARGE)
        return edges(buckets, signatures, bags, documents, vocabulary, comparing, signing.version())

    @report(
        "recall",
        RECALL,
        "signatures",
        "bags",
        "vocabulary",
        config=sampling,
        checks=[
            alarm(
                "buckets_find_what_they_promise",
                "count_if(pairs >= 100 AND recall < predicted - 0.1)",
                "In steps of at least 100 sampled pairs, recall is at most 0.1 below its prediction.",
                "pairs",
                "recall",
                "predicted",
            )
        ],
    )
    def group_recall(signatures: DataFrame, bags: DataFrame, vocabulary: DataFrame) -> DataFrame:
        """The share of similar pairs that share a bucket, measured on a sample."""
        return recall(signatures, located(bags, *LARGE), vocabulary, sampling)

    @report("sweep", SWEEP, "signatures", "edges", texts=texts, config=sweeping)
    def group_sweep(signatures: DataFrame, edges: DataFrame, **upstream: DataFrame) -> DataFrame:
        """Documents kept at each threshold of the sweep."""
        return sweep(texts.documents(upstream), signatures, edges, sweeping)

    compared = (group_bags, group_vocabulary, group_signatures, group_buckets, group_edges)
    reports = (group_recall, group_largest_buckets, group_sweep)
    decided = _decisions(name, name, owners, chosen, texts, repositories)
    assets = [*compared, *reports, *decided]
    if repositories is not None and repositories.topics:
        assets.append(topics_by_hand(name, owners, repositories.topics))
    return DedupGroup(name, kind, tuple(datasets), chosen, tuple(assets), repositories, owners)


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
        known = ", ".join(f"{it:g}" for it in group.config.thresholds)
        raise ConfigurationError(
            f"Dedup group `{group.name}` has no decisions at {threshold:g}. It has edges for {known}: "
            "add the threshold to its `sweep`."
        )
    others = tuple(it for it in group.config.thresholds if it != threshold)
    config = group.config.changed(threshold=threshold, sweep=others, keep=keep or group.config.keep)
    own = names.variant(group.name, name)
    texts = _Texts(group.datasets, lambda dataset: names.variant(dataset, name))
    assets = _decisions(own, group.name, group.owners, config, texts, group.repositories)
    datasets = tuple(names.variant(dataset, name) for dataset in group.datasets)
    return DedupGroup(own, group.kind, datasets, config, assets, group.repositories, group.owners)


class _Texts:
    """The filtered documents of datasets, as arguments of an asset, each dataset renamed by `name`."""

    def __init__(self, datasets: Sequence[str], name: Callable[[str], str] = str) -> None:
        self.tables = {f"raw_{dataset}": names.raw(dataset) for dataset in datasets} | {
            f"filtered_{dataset}": names.filtered(dataset) for dataset in datasets
        }
        self.names = {name(dataset): dataset for dataset in datasets}

    def documents(self, upstream: Mapping[str, DataFrame]) -> DataFrame:
        return of_datasets(
            {
                name: self._kept(dataset, upstream[f"raw_{dataset}"], upstream)
                for name, dataset in self.names.items()
            }
        )

    def located(self, upstream: Mapping[str, DataFrame]) -> DataFrame:
        """The documents with text locations in place of the texts."""
        return of_datasets(
            {
                name: self._kept(dataset, located(upstream[f"raw_{dataset}"], "text"), upstream)
                for name, dataset in self.names.items()
            }
        )

    def _kept(self, dataset: str, documents: DataFrame, upstream: Mapping[str, DataFrame]) -> DataFrame:
        return kept_documents(documents, upstream[f"filtered_{dataset}"])


def _declare(  # type: ignore[no-untyped-def]
    group: str,
    compared: str,
    owners: tuple[str, ...],
    part: str,
    schema: TableSchema,
    *parts: str,
    texts: _Texts | None = None,
    tables: Mapping[str, names.TableName] | None = None,
    **options,
):
    """The decorator of `dedup.<group>_<part>`, which reads `parts`, those up to the edges of `compared`.

    The function also gets the documents of `texts`, and `tables` by argument. Its docstring, with the name of
    the group, is the description.
    """
    upstream = {it: names.dedup(compared if it in _COMPARED else group, it) for it in parts}

    def declare(function: Callable[..., AssetResult]) -> dg.AssetsDefinition:
        about = (inspect.getdoc(function) or "").rstrip(".")
        return table_asset(
            namespace="dedup",
            name=f"{group}_{part}",
            schema=schema,
            upstream=upstream | (texts.tables if texts else {}) | dict(tables or {}),
            description=f"{about}, in dedup group `{group}`.",
            owners=owners,
            # Texts and bags bypass these batches.
            **{
                "asset_group": comparison_group(group),
                "rows_per_batch": NARROW_ROWS_PER_ARROW_BATCH,
                **options,
            },
        )(function)

    return declare


def _decisions(
    group: str,
    compared: str,
    owners: tuple[str, ...],
    config: DedupConfig,
    texts: _Texts,
    repositories: RepositoryConfig | None,
) -> tuple[dg.AssetsDefinition, ...]:
    """The assets that decide at the threshold of `config`."""
    declare = partial(_declare, group, compared, owners)
    deciding = config.part(DecisionConfig)

    @declare("components", COMPONENTS, "edges", "signatures", config={"threshold": config.threshold})
    def group_components(edges: DataFrame, signatures: DataFrame) -> DataFrame:
        """The connected component of every document."""
        return components(edges, signatures, config.threshold)

    @declare(
        "decisions",
        DECISIONS,
        "signatures",
        "edges",
        "components",
        *(["repositories"] if repositories else []),
        texts=texts,
        config=deciding,
        checks=[
            removal_names_a_kept_document(repositories),
            removal_is_similar_enough(deciding, repositories),
            component_keeps_a_document(repositories),
            *(_loses_little(dataset, config.removed_alarm) for dataset in texts.names),
        ],
    )
    def group_decisions(
        signatures: DataFrame, edges: DataFrame, components: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """Which documents stay and which kept one each removed document resembles."""
        documents = texts.documents(upstream)
        if repositories is None:
            return decisions(documents, signatures, edges, components, deciding)
        removed = upstream["repositories"]
        return decisions_without(documents, signatures, edges, components, removed, deciding)

    if repositories is None:
        return group_components, group_decisions
    of_repositories = repository_assets(
        partial(declare, texts=texts), texts.documents, compared, config, repositories
    )
    return group_components, *of_repositories, group_decisions


def _loses_little(dataset: str, share: float) -> Check:
    removed = f"avg(CASE WHEN dataset = '{dataset}' THEN int(NOT kept) END)"
    return alarm(
        f"{dataset}_loses_little",
        f"coalesce({removed}, 0)",
        f"At most {share:.0%} of the documents of {dataset} are removed.",
        "dataset",
        "kept",
        limit=share,
    )


def _require_apart(name: str, datasets: Sequence[str]) -> None:
    if not datasets:
        raise ConfigurationError(f"Dedup group `{name}` has no datasets. Name at least one.")
    holder: dict[str, str] = {}
    for dataset in map(names.dataset, datasets):
        other = holder.setdefault(names.base(dataset), dataset)
        if other == dataset and datasets.count(dataset) > 1:
            raise ConfigurationError(f"Dedup group `{name}` names `{dataset}` twice. Name it once.")
        if other != dataset:
            raise ConfigurationError(
                f"Dedup group `{name}` holds `{other}` and `{dataset}`, which have the same documents. "
                "Give each variant a group of its own."
            )
