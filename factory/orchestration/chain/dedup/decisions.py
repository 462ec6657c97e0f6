"""The assets that decide which documents of a dedup group stay, at one threshold and by one keep rule."""

from __future__ import annotations

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.components import components
from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig, decisions
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_decisions import decisions_without
from factory.lake.schemas.dedup import COMPONENTS, DECISIONS
from factory.orchestration.chain.dedup.parts import Declaring
from factory.orchestration.chain.dedup.repositories import (
    component_keeps_a_document,
    removal_is_similar_enough,
    removal_names_a_kept_document,
    repository_assets,
)
from factory.orchestration.table.checks import Check, alarm


def deciding(
    declare: Declaring, config: DedupConfig, repositories: RepositoryConfig | None
) -> tuple[dg.AssetsDefinition, ...]:
    """The assets `components` and `decisions`, with whole `repositories` decided between the two."""
    texts = declare.texts
    decision_config = config.part(DecisionConfig)

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
        reads_texts=True,
        config=decision_config,
        checks=[
            removal_names_a_kept_document(repositories),
            removal_is_similar_enough(decision_config, repositories),
            component_keeps_a_document(repositories),
            *(_loses_little(dataset, config.removed_alarm) for dataset in texts.datasets),
        ],
    )
    def group_decisions(
        signatures: DataFrame, edges: DataFrame, components: DataFrame, **upstream: DataFrame
    ) -> DataFrame:
        """Which documents stay and which kept one each removed document resembles."""
        documents = texts.documents(upstream)
        if repositories is None:
            return decisions(documents, signatures, edges, components, decision_config)
        removed = upstream["repositories"]
        return decisions_without(documents, signatures, edges, components, removed, decision_config)

    if repositories is None:
        return group_components, group_decisions
    return group_components, *repository_assets(declare, config, repositories), group_decisions


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
