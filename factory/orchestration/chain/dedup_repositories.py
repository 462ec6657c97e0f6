"""The assets of a dedup group that compare and decide whole repositories, and the checks they call for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame

from factory.dedup.config import DedupConfig
from factory.dedup.repositories import facts, repositories
from factory.dedup.repository_config import RepositoryConfig
from factory.dedup.repository_edges import repository_edges
from factory.lake import names, schemas
from factory.lake.repository import WITH_ITS_REPOSITORY
from factory.orchestration.asset.checks import Check, aggregate, holds
from factory.orchestration.asset.declaration import Made
from factory.orchestration.asset.publication import Tables
from factory.orchestration.asset.table_asset import table_asset

_WITH_ITS_REPOSITORY = f"reason IN {WITH_ITS_REPOSITORY}"


def repository_assets(
    declare: Callable[..., Callable[[Callable[..., Made]], dg.AssetsDefinition]],
    documents: Callable[[Mapping[str, DataFrame]], DataFrame],
    group: str,
    config: DedupConfig,
    chosen: RepositoryConfig,
) -> tuple[dg.AssetsDefinition, ...]:
    """`repository_edges` and `repositories` of a group, or of a variant of `group`, whose topics it takes.

    `declare` declares a part of the group that reads other parts and its documents, which `documents` takes
    from the arguments.
    """

    def besides(*but: str) -> dict[str, Any]:
        return {"repositories": chosen.model_dump(mode="json", exclude=set(but))}

    @declare(
        "repository_edges",
        schemas.REPOSITORY_EDGES,
        "signatures",
        "edges",
        besides=besides("topics", "topics_table", "dropped_topics"),
    )
    def group_repository_edges(signatures: DataFrame, edges: DataFrame, **upstream: DataFrame) -> DataFrame:
        """The pairs of repositories one of which holds nearly all of the other."""
        return repository_edges(documents(upstream), signatures, edges, config, chosen)

    @declare(
        "repositories",
        schemas.REPOSITORIES,
        "signatures",
        "edges",
        "components",
        "repository_edges",
        tables=_topics(group, chosen),
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
        besides=besides(),
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
            config,
            chosen,
        ).localCheckpoint()
        return Tables(decided, facts=facts(decided, chosen))

    return group_repository_edges, group_repositories


def _topics(group: str, chosen: RepositoryConfig) -> dict[str, names.TableName]:
    """The table of topics, if there are any, as an argument."""
    if chosen.topics_table:
        return {"topics": names.TableName.parse(chosen.topics_table)}
    return {"topics": names.dedup(group, "topics")} if chosen.topics else {}


def topics_by_hand(group: str, group_name: str, chosen: RepositoryConfig) -> dg.AssetsDefinition:
    """`dedup.<group>_topics`, with the topics that `chosen` gives."""
    table = names.dedup(group, "topics")

    @table_asset(
        namespace=table.namespace,
        name=table.name,
        group_name=group_name,
        schema=schemas.TOPICS,
        config={"topics": chosen.topics},
    )
    def group_topics(pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        """The topic of each repository, as it is given by hand."""
        rows = sorted(chosen.topics.items())
        return pyspark.spark_session.createDataFrame(rows, "repository string, topic string")

    return group_topics


def names_a_kept_one(chosen: RepositoryConfig | None) -> Check:
    """What is removed by itself names a kept document; what goes with its repository, if it has a like."""
    by_itself = "kept = (duplicate_of IS NULL)"
    with_its_repository = "NOT kept AND (duplicate_of IS NULL) = (similarity IS NULL)"
    return holds(
        "a_removed_document_names_a_kept_one",
        f"if({_WITH_ITS_REPOSITORY}, {with_its_repository}, {by_itself})" if chosen else by_itself,
        "kept",
        "duplicate_of",
        *(["reason", "similarity"] if chosen else []),
    )


def removed_for_its_like(config: DedupConfig, chosen: RepositoryConfig | None) -> Check:
    """A removal has a similarity that reaches the threshold, unless its reason says why it has none."""
    enough = f"similarity >= {config.threshold}"
    may_have_none = ["'connected'", "'exact_copy'"] if config.keep == "one_per_component" else []
    may_have_none += ["'repository'", "'topic'"] if chosen else []
    removed = f"coalesce({enough} AND reason != 'connected', false)"
    if may_have_none:
        removed = f"if(similarity IS NULL, reason IN ({', '.join(may_have_none)}), {removed})"
    return holds(
        "a_removal_is_similar_enough",
        f"if(kept, similarity IS NULL, {removed})",
        "kept",
        "reason",
        "similarity",
    )


def loses_no_family(chosen: RepositoryConfig | None) -> Check:
    """Of every component something is kept, but for what goes with its repositories."""
    family = f"CASE WHEN NOT {_WITH_ITS_REPOSITORY} THEN component END" if chosen else "component"
    of_what = "Of every component that its repositories leave" if chosen else "Of every component"
    return aggregate(
        "no_family_is_lost",
        f"count(DISTINCT {family}) - count(DISTINCT CASE WHEN kept THEN component END)",
        f"{of_what} a document is kept.",
        "component",
        "kept",
        *(["reason"] if chosen else []),
    )
