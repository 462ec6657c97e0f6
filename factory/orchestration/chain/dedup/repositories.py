"""The assets of a dedup group that compare and decide whole repositories, and the checks they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.config import DedupConfig
from factory.dedup.decisions import DecisionConfig
from factory.dedup.repositories import RepositoryDecisionConfig, facts, repositories
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_edges import RepositoryEdgeConfig, repository_edges
from factory.lake import names
from factory.lake.repository import WITH_ITS_REPOSITORY
from factory.lake.schemas.dedup import REPOSITORIES, REPOSITORY_EDGES, TOPICS
from factory.orchestration.chain.dedup.parts import Declaring
from factory.orchestration.groups import comparison_group
from factory.orchestration.table.checks import Check, aggregate, holds
from factory.orchestration.table.declaration import Tables
from factory.orchestration.table.table_asset import table_asset

_WITH_ITS_REPOSITORY = f"reason IN {WITH_ITS_REPOSITORY}"


def repository_assets(
    declare: Declaring, config: DedupConfig, chosen: RepositoryConfig
) -> tuple[dg.AssetsDefinition, ...]:
    """`repository_edges` and `repositories` of a group; a variant of a group has the group's topics."""
    documents = declare.texts.documents
    comparing = RepositoryEdgeConfig(
        threshold=config.threshold, priority=config.priority, share=chosen.share, pinned=chosen.pinned
    )
    deciding = RepositoryDecisionConfig(**comparing.model_dump(), dropped_topics=chosen.dropped_topics)

    @declare("repository_edges", REPOSITORY_EDGES, "signatures", "edges", reads_texts=True, config=comparing)
    def group_repository_edges(signatures: DataFrame, edges: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The pairs of repositories one of which holds nearly all of the other."""
        return repository_edges(documents(upstream), signatures, edges, comparing)

    @declare(
        "repositories",
        REPOSITORIES,
        "signatures",
        "edges",
        "components",
        "repository_edges",
        reads_texts=True,
        tables=_topics(declare.compared, chosen),
        checks=[
            holds(
                "a_duplicate_names_a_repository_that_shares_enough",
                "CASE reason WHEN 'duplicate' THEN NOT kept AND duplicate_of != repository_id "
                f"AND share >= {chosen.share} WHEN 'topic' THEN NOT kept AND duplicate_of IS NULL "
                "ELSE kept AND duplicate_of IS NULL END",
                "repository_id",
                "kept",
                "reason",
                "duplicate_of",
                "share",
            )
        ],
        config=deciding,
    )
    def group_repositories(
        signatures: DataFrame,
        edges: DataFrame,
        components: DataFrame,
        repository_edges: DataFrame,
        **upstream: DataFrame,
    ) -> Tables:
        """Which repositories stay, and which kept one holds nearly all of each removed repository."""
        decided = repositories(
            documents(upstream),
            signatures,
            edges,
            components,
            repository_edges,
            upstream.get("topics"),
            deciding,
        ).localCheckpoint()
        return Tables(decided, facts=facts(decided, chosen.pinned, chosen.dropped_topics))

    return group_repository_edges, group_repositories


def _topics(group: str, chosen: RepositoryConfig) -> dict[str, names.TableName]:
    """The table of topics as an argument, if the group has topics."""
    if chosen.topics_table:
        return {"topics": names.TableName.parse(chosen.topics_table)}
    return {"topics": names.dedup(group, "topics")} if chosen.topics else {}


def topics_by_hand(group: str, owners: Sequence[str], topics: Mapping[str, str]) -> dg.AssetsDefinition:
    """`dedup.<group>_topics`, with `topics` by repository."""
    table = names.dedup(group, "topics")

    @table_asset(
        namespace=table.namespace,
        name=table.name,
        asset_group=comparison_group(group),
        schema=TOPICS,
        config={"topics": dict(topics)},
        description=f"The topic of each repository of dedup group `{group}`, given by hand.",
        owners=owners,
    )
    def group_topics(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        rows = sorted(topics.items())
        return pyspark.spark_session.createDataFrame(rows, "repository string, topic string")

    return group_topics


def removal_names_a_kept_document(repositories: RepositoryConfig | None) -> Check:
    """A removed document names a kept one; with its repository removed, only if a kept one resembles it."""
    by_itself = "kept = (duplicate_of IS NULL)"
    with_its_repository = "NOT kept AND (duplicate_of IS NULL) = (similarity IS NULL)"
    condition = (
        f"if({_WITH_ITS_REPOSITORY}, {with_its_repository}, {by_itself})" if repositories else by_itself
    )
    return holds(
        "a_removed_document_names_a_kept_one",
        f"{condition} AND (duplicate_of IS NULL) = (kept_document IS NULL)",
        "kept",
        "duplicate_of",
        "kept_document",
        *(["reason", "similarity"] if repositories else []),
        description="A removed document names the kept document that it resembles"
        + (", unless it left with its repository." if repositories else "."),
    )


def removal_is_similar_enough(config: DecisionConfig, repositories: RepositoryConfig | None) -> Check:
    """An exact copy has similarity 1; else it reaches the threshold, or the reason explains the null."""
    enough = f"similarity >= if(reason = 'exact_copy', 1, {config.threshold})"
    may_have_none = ["'connected'"] if config.keep == "one_per_component" else []
    may_have_none += ["'repository'", "'topic'"] if repositories else []
    removed = f"coalesce({enough} AND reason != 'connected', false)"
    if may_have_none:
        removed = f"if(similarity IS NULL, reason IN ({', '.join(may_have_none)}), {removed})"
    return holds(
        "a_removal_is_similar_enough",
        f"if(kept, similarity IS NULL, {removed})",
        "kept",
        "reason",
        "similarity",
        description=f"A removed document has a similarity of at least {config.threshold:g} to the kept "
        "document that it names" + (", or its reason says why it has none." if may_have_none else "."),
    )


def component_keeps_a_document(repositories: RepositoryConfig | None) -> Check:
    """Every component keeps a document, unless all its documents are in removed repositories."""
    family = f"CASE WHEN NOT {_WITH_ITS_REPOSITORY} THEN component END" if repositories else "component"
    every = "Every component outside removed repositories" if repositories else "Every component"
    return aggregate(
        "no_family_is_lost",
        f"count(DISTINCT {family}) - count(DISTINCT CASE WHEN kept THEN component END)",
        f"{every} keeps a document.",
        "component",
        "kept",
        *(["reason"] if repositories else []),
    )
