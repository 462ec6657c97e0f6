"""A dedup group: datasets whose documents are compared with each other, and the assets that do it.

    bags -> vocabulary -> signatures -> buckets -> edges -> components -> decisions
                                     -> recall  -> largest_buckets

With `repositories`, whole repositories are compared first, and documents are decided among what they leave:

    edges -> repository_edges -> repositories -> decisions

Each asset body is one call of the stage `factory.dedup`. A group compares its documents once: what it
decides at another threshold of its sweep, or by another keep rule, is `at_threshold`, which has components
and decisions of its own. A run that keeps what is unchanged keeps the vocabulary while the group grows, so
known texts keep their signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.bags import LARGE, bags
from factory.dedup.buckets import buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig, Keep
from factory.dedup.decisions import decisions
from factory.dedup.edges import edges
from factory.dedup.largest_buckets import largest_buckets
from factory.dedup.recall import recall
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_decisions import decisions_without
from factory.dedup.signatures import signatures
from factory.dedup.sweep import sweep
from factory.dedup.vocabulary import vocabulary
from factory.errors import ConfigurationError
from factory.lake import names, schemas
from factory.lake_spark.documents import kept_documents, located, of_datasets
from factory.orchestration.asset.checks import Check, alarm, holds
from factory.orchestration.asset.table_asset import table_asset
from factory.orchestration.chain.dedup_repositories import (
    loses_no_family,
    names_a_kept_one,
    removed_for_its_like,
    repository_assets,
    topics_by_hand,
)
from factory.spark import NARROW_ROWS_PER_ARROW_BATCH, ROWS_PER_ARROW_BATCH

Kind = Literal["prose", "code"]

# What the tables of every text depend on, so that no other setting makes them again.
OF_BAGS = frozenset({"kind", "tokens", "shingle", "text_bytes"})
OF_VOCABULARY = OF_BAGS | {"text_documents"}
OF_SIGNATURES = frozenset({"kind", "tokens", "shingle", "scheme", "values", "value_bits", "seed", "priority"})


@dataclass(frozen=True)
class DedupGroup:
    """Datasets that are deduplicated together, and the assets that do it."""

    name: str
    kind: Kind
    datasets: tuple[str, ...]
    config: DedupConfig
    assets: tuple[dg.AssetsDefinition, ...]
    group_name: str
    repositories: RepositoryConfig | None = None


def dedup_group(
    name: str,
    datasets: Sequence[str],
    *,
    kind: Kind,
    group_name: str | None = None,
    config: DedupConfig | None = None,
    repositories: RepositoryConfig | None = None,
) -> DedupGroup:
    """Declare that `datasets` are deduplicated together, once; `refine` refers to the group.

    The assets stand in the asset group `group_name`, that of the group's own name unless given. With
    `repositories`, those that another one holds go as a whole, before documents are decided. Raises
    ConfigurationError for no datasets, one that is named twice, and two variants of one, whose documents
    would be copies of each other; and for repositories of prose.
    """
    _require_apart(name, datasets)
    if repositories is not None and kind != "code":
        raise ConfigurationError(
            f"Dedup group `{name}` is {kind}, which has no repositories. Leave `repositories` out."
        )
    chosen = config or DedupConfig(kind=kind)
    text = _Texts(datasets)
    declare = partial(_declare, name, name, group_name or name, chosen)

    @declare("bags", schemas.BAGS, text=text, settings=OF_BAGS)
    def group_bags(before: DataFrame | None, **upstream: DataFrame) -> DataFrame:
        """The bag of words of every distinct text."""
        return bags(text.located(upstream), chosen, before)

    @declare(
        "vocabulary",
        schemas.VOCABULARY,
        "bags",
        settings=OF_VOCABULARY,
        growth=chosen.recount_growth,
        rows_per_batch=ROWS_PER_ARROW_BATCH,  # a part of the counts has 100 KB
    )
    def group_vocabulary(before: DataFrame | None, bags: DataFrame) -> DataFrame:
        """Every token with its term and document frequency."""
        return vocabulary(located(bags, *LARGE), chosen, before)

    @declare("signatures", schemas.SIGNATURES, "bags", "vocabulary", text=text, settings=OF_SIGNATURES)
    def group_signatures(
        before: DataFrame | None, bags: DataFrame, vocabulary: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """The weighted MinHash signature of every distinct text."""
        return signatures(text.documents(upstream), located(bags, *LARGE), vocabulary, chosen, before)

    @declare("buckets", schemas.BUCKETS, "signatures")
    def group_buckets(signatures: DataFrame) -> DataFrame:
        """The bucket of every signature in every band."""
        return buckets(signatures, chosen)

    @declare("largest_buckets", schemas.LARGEST_BUCKETS, "buckets", text=text)
    def group_largest_buckets(buckets: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The largest buckets, with the beginning of their best document."""
        return largest_buckets(text.documents(upstream), buckets, chosen)

    @declare(
        "edges",
        schemas.EDGES,
        "buckets",
        "signatures",
        "bags",
        "vocabulary",
        text=text,
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
        documents = text.documents(upstream)
        return edges(buckets, signatures, located(bags, *LARGE), documents, vocabulary, chosen)

    @declare(
        "recall",
        schemas.RECALL,
        "signatures",
        "bags",
        "vocabulary",
        checks=[
            alarm(
                "buckets_find_what_they_promise",
                "count_if(pairs >= 100 AND recall < predicted - 0.1)",
                "Of 100 sampled pairs or more, no tenth is missing that the banding promises.",
                "pairs",
                "recall",
                "predicted",
            )
        ],
    )
    def group_recall(signatures: DataFrame, bags: DataFrame, vocabulary: DataFrame) -> DataFrame:
        """Which share of similar pairs shares a bucket, measured on a sample."""
        return recall(signatures, located(bags, *LARGE), vocabulary, chosen)

    @declare("sweep", schemas.SWEEP, "signatures", "edges", text=text)
    def group_sweep(signatures: DataFrame, edges: DataFrame, **upstream: DataFrame) -> DataFrame:
        """What each threshold of the sweep keeps."""
        return sweep(text.documents(upstream), signatures, edges, chosen)

    compared = (group_bags, group_vocabulary, group_signatures, group_buckets, group_edges)
    told = (group_recall, group_largest_buckets, group_sweep)
    decided = _decisions(name, name, group_name or name, chosen, text, repositories)
    assets = [*compared, *told, *decided]
    if repositories is not None and repositories.topics:
        assets.append(topics_by_hand(name, group_name or name, repositories))
    return DedupGroup(name, kind, tuple(datasets), chosen, tuple(assets), group_name or name, repositories)


def at_threshold(
    group: DedupGroup, name: str, threshold: float | None = None, keep: Keep | None = None
) -> DedupGroup:
    """Variant `name` of every dataset of `group`, decided at another threshold or by another keep rule.

    What is left out is as `group` has it. The variant shares all that was read, signed and compared;
    repositories are compared again, by the documents that are alike at its threshold. Raises
    ConfigurationError for a threshold that is not in the sweep, because large buckets have leaders for
    those thresholds alone.
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
    text = _Texts(group.datasets, lambda dataset: names.variant(dataset, name))
    assets = _decisions(own, group.name, group.group_name, config, text, group.repositories)
    datasets = tuple(names.variant(dataset, name) for dataset in group.datasets)
    return DedupGroup(own, group.kind, datasets, config, assets, group.group_name, group.repositories)


class _Texts:
    """The filtered documents of datasets as arguments of an asset; `name` says what each is called there."""

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
        """The documents with the places of their texts in place of these."""
        return of_datasets(
            {
                name: self._kept(dataset, located(upstream[f"raw_{dataset}"], "text"), upstream)
                for name, dataset in self.names.items()
            }
        )

    def _kept(self, dataset: str, documents: DataFrame, upstream: Mapping[str, DataFrame]) -> DataFrame:
        return kept_documents(documents, upstream[f"filtered_{dataset}"])


def _declare(  # type: ignore[no-untyped-def]
    of: str,
    compared: str,
    group_name: str,
    config: DedupConfig,
    part: str,
    schema: schemas.TableSchema,
    *parts: str,
    text: _Texts | None = None,
    settings: Set[str] = frozenset(DedupConfig.model_fields),
    tables: Mapping[str, names.TableName] | None = None,
    besides: Mapping[str, Any] | None = None,
    **options,
):
    """The decorator of `dedup.<of>_<part>`, which reads other parts, of `compared` those up to the edges.

    It also reads the documents of `text`, and `tables` by argument. Its rows follow from `settings` of
    `config`, and from `besides`.
    """
    shared = ("bags", "vocabulary", "signatures", "buckets", "edges")
    upstream = {it: names.dedup(compared if it in shared else of, it) for it in parts}
    return table_asset(
        namespace="dedup",
        name=f"{of}_{part}",
        group_name=group_name,
        schema=schema,
        upstream=upstream | (text.tables if text else {}) | dict(tables or {}),
        config=config.model_dump(mode="json", include=set(settings)) | dict(besides or {}),
        # Texts and bags are read where they lie.
        **{"rows_per_batch": NARROW_ROWS_PER_ARROW_BATCH, **options},
    )


def _decisions(
    of: str,
    compared: str,
    group_name: str,
    config: DedupConfig,
    text: _Texts,
    chosen: RepositoryConfig | None,
) -> tuple[dg.AssetsDefinition, ...]:
    """The assets that decide at the threshold of `config`."""
    declare = partial(_declare, of, compared, group_name, config)

    @declare("components", schemas.COMPONENTS, "edges", "signatures")
    def group_components(edges: DataFrame, signatures: DataFrame) -> DataFrame:
        """The connected component of every document."""
        return components(edges, signatures, config)

    @declare(
        "decisions",
        schemas.DECISIONS,
        "signatures",
        "edges",
        "components",
        *(["repositories"] if chosen else []),
        text=text,
        checks=[
            names_a_kept_one(chosen),
            removed_for_its_like(config, chosen),
            loses_no_family(chosen),
            *(_loses_little(dataset, config.removed_alarm) for dataset in text.names),
        ],
    )
    def group_decisions(
        signatures: DataFrame, edges: DataFrame, components: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """Which documents stay and which kept one each removed document resembles."""
        documents = text.documents(upstream)
        if chosen is None:
            return decisions(documents, signatures, edges, components, config)
        return decisions_without(documents, signatures, edges, components, upstream["repositories"], config)

    if chosen is None:
        return group_components, group_decisions
    on_texts = partial(declare, text=text)
    of_repositories = repository_assets(on_texts, text.documents, compared, config, chosen)
    return group_components, *of_repositories, group_decisions


def _loses_little(dataset: str, share: float) -> Check:
    removed = f"avg(CASE WHEN dataset = '{dataset}' THEN int(NOT kept) END)"
    return alarm(
        f"{dataset}_loses_little",
        f"coalesce({removed}, 0)",
        f"Of {dataset} at most {share:.0%} of the documents are removed.",
        "dataset",
        "kept",
        limit=share,
    )


def _require_apart(name: str, datasets: Sequence[str]) -> None:
    if not datasets:
        raise ConfigurationError(f"Dedup group `{name}` holds no dataset. Name at least one.")
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
