"""Names of repositories in tables, and the reasons for removing whole repositories.

A repository is `dataset/repository@revision`: each revision counts by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake

WITH_ITS_REPOSITORY = ("repository", "topic")  # reasons in `_decisions`: removed with the repository


def repository_id(dataset: str, repository: str | None, revision: str | None) -> str | None:
    """Return the name of a document's repository, None without one; without a revision it ends before `@`."""
    if repository is None:
        return None
    return f"{dataset}/{repository}" + ("" if revision is None else f"@{revision}")


def repositories_of(decisions: TableName) -> TableName:
    """Return the table of repositories of a group, by its table of decisions."""
    return names.dedup(decisions.name.removesuffix("_decisions"), "repositories")


def why_removed(
    lake: Lake, decisions: TableName, snapshot_id: int | None = None
) -> Callable[[str | None], str]:
    """Return a function that explains why a repository was removed.

    It reads the table of repositories at the snapshot that the decisions (at `snapshot_id`, by default the
    newest) were made from, or the newest if that one has expired; the newest may lack a repository.
    """
    made = lake.published(decisions) if snapshot_id is None else lake.published_at(decisions, snapshot_id)
    table = repositories_of(decisions)
    at = made.lineage.upstream.get(str(table))
    if at is not None and lake.table(table).snapshot_by_id(at) is None:
        at = None
    columns = ("repository_id", "reason", "topic", "duplicate_of", "share", "kept")
    rows = lake.read(table, columns, "kept = false", at).to_pylist()
    why = {row["repository_id"]: _why(row) for row in rows}
    return lambda repository: why.get(str(repository), "its repository was removed")


def _why(row: Mapping[str, Any]) -> str:
    repository = f"its repository {row['repository_id']} was removed"
    if row["reason"] == "topic":
        return f"{repository} with its topic {row['topic']}"
    return f"{repository} as a duplicate of {row['duplicate_of']}, which holds {row['share']:.1%} of it"
