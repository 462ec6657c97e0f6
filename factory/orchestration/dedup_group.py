"""A dedup group: datasets whose documents are compared with each other, and the assets that do it.

    vocabulary -> signatures -> buckets -> edges -> components -> decisions

Each asset body is one call of the stage `factory.dedup`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.buckets import buckets
from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import decisions
from factory.dedup.edges import edges
from factory.dedup.signatures import signatures
from factory.dedup.vocabulary import vocabulary
from factory.errors import ConfigurationError
from factory.lake import names, schemas
from factory.lake_spark.documents import kept_documents, of_datasets
from factory.orchestration.checks import holds
from factory.orchestration.table_asset import table_asset

Kind = Literal["prose", "code"]


@dataclass(frozen=True)
class DedupGroup:
    """Datasets that are deduplicated together, and the assets that do it."""

    name: str
    kind: Kind
    datasets: tuple[str, ...]
    config: DedupConfig
    assets: tuple[dg.AssetsDefinition, ...]


def dedup_group(
    name: str,
    datasets: Sequence[str],
    *,
    kind: Kind,
    group_name: str | None = None,
    config: DedupConfig | None = None,
) -> DedupGroup:
    """Declare that `datasets` are deduplicated together, once; `refine` refers to the group.

    The assets stand in the asset group `group_name`, that of the group's own name unless given. Raises
    ConfigurationError for no datasets, one that is named twice, and two variants of one, whose documents
    would be copies of each other.
    """
    _require_apart(name, datasets)
    chosen = config or DedupConfig(kind=kind)
    raw_and_verdicts = {f"raw_{dataset}": names.raw(dataset) for dataset in datasets} | {
        f"filtered_{dataset}": names.filtered(dataset) for dataset in datasets
    }

    def documents(upstream: Mapping[str, DataFrame]) -> DataFrame:
        return of_datasets(
            {
                dataset: kept_documents(upstream[f"raw_{dataset}"], upstream[f"filtered_{dataset}"])
                for dataset in datasets
            }
        )

    def declare(part: str, schema: schemas.TableSchema, *parts: str, text: bool = False, **options):  # type: ignore[no-untyped-def]
        upstream = {of: names.dedup(name, of) for of in parts} | (raw_and_verdicts if text else {})
        return table_asset(
            namespace="dedup",
            name=f"{name}_{part}",
            group_name=group_name or name,
            schema=schema,
            upstream=upstream,
            config=chosen,
            **options,
        )

    @declare("vocabulary", schemas.VOCABULARY, text=True)
    def group_vocabulary(**upstream: DataFrame) -> DataFrame:
        """Every token with its term and document frequency."""
        return vocabulary(documents(upstream), chosen)

    @declare("signatures", schemas.SIGNATURES, "vocabulary", text=True)
    def group_signatures(vocabulary: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The weighted MinHash signature of every distinct text."""
        return signatures(documents(upstream), vocabulary, chosen)

    @declare("buckets", schemas.BUCKETS, "signatures")
    def group_buckets(signatures: DataFrame) -> DataFrame:
        """The bucket of every signature in every band."""
        return buckets(signatures, chosen)

    @declare(
        "edges",
        schemas.EDGES,
        "buckets",
        "signatures",
        "vocabulary",
        text=True,
        checks=[holds("every_edge_is_similar", f"similarity >= {chosen.threshold}", "similarity")],
    )
    def group_edges(
        buckets: DataFrame, signatures: DataFrame, vocabulary: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """The pairs of documents whose exact similarity reaches the threshold."""
        return edges(buckets, signatures, documents(upstream), vocabulary, chosen)

    @declare("components", schemas.COMPONENTS, "edges", "signatures")
    def group_components(edges: DataFrame, signatures: DataFrame) -> DataFrame:
        """The connected component of every document."""
        return components(edges, signatures, chosen)

    @declare(
        "decisions",
        schemas.DECISIONS,
        "signatures",
        "edges",
        "components",
        text=True,
        checks=[
            holds(
                "a_removed_document_names_a_kept_one", "kept = (duplicate_of IS NULL)", "kept", "duplicate_of"
            )
        ],
    )
    def group_decisions(
        signatures: DataFrame, edges: DataFrame, components: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """Which documents stay and which kept one each removed document resembles."""
        return decisions(documents(upstream), signatures, edges, components, chosen)

    assets = (
        group_vocabulary,
        group_signatures,
        group_buckets,
        group_edges,
        group_components,
        group_decisions,
    )
    return DedupGroup(name, kind, tuple(datasets), chosen, assets)


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
