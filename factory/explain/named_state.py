"""The state of a table that a person names: its newest, an earlier one, or a branch.

raw.web                          the newest
raw.web@before                   the one published before the newest
raw.web@8165021258153644459      a snapshot, as `factory tables --json` shows them
raw.web.branch_failed_3f2a       a branch, as a failed run names the rows that it kept for a look
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from factory.errors import ConfigurationError, NotFound, TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake, unknown_table
from factory.suggestions import nearest, quoted

BEFORE = "before"

_BRANCH = re.compile(r"([^.]+\.[^.]+)\.branch_(\w+)")


@dataclass(frozen=True)
class NamedState:
    """A table at a snapshot."""

    table: TableName
    snapshot_id: int


@dataclass(frozen=True)
class StateName:
    """The name of a state, parsed without a lake: a table with a branch, a version or neither.

    `version` is `before`, or a snapshot id in digits.
    """

    table: TableName
    branch: str | None = None
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> StateName:
        """Return the parts of a name; raise ConfigurationError for a text that names no state."""
        if branch := _BRANCH.fullmatch(text):
            return cls(TableName.parse(branch[1]), branch=branch[2])
        name, mark, version = text.partition("@")
        table = TableName.parse(name)
        if mark and version != BEFORE and not version.isdecimal():
            raise ConfigurationError(
                f"`{version}` is not a snapshot. Write {name}@{BEFORE} for the previous state, or an id that "
                "factory tables --json shows."
            )
        return cls(table, version=version if mark else None)


def named_state(lake: Lake, text: str) -> NamedState:
    """Return the state that `text` names.

    Raises ConfigurationError for a text that names no table, TableNotFound for a table, snapshot or branch
    that is not there, with the nearest table, and NotFound if nothing was published before.
    """
    name = StateName.parse(text)
    table = name.table
    _require(lake, table)
    if name.branch is not None:
        return NamedState(table, _head(lake, table, name.branch))
    if name.version == BEFORE:
        return NamedState(table, _before(lake, table, lake.published(table).snapshot_id))
    if name.version is None:
        return NamedState(table, lake.published(table).snapshot_id)
    return NamedState(table, lake.published_at(table, int(name.version)).snapshot_id)


def _require(lake: Lake, table: TableName) -> None:
    """Raise TableNotFound for a table that is not there, with the nearest one if there is one."""
    tables = lake.names_in_file()
    if table in tables:
        return
    names = [other.name for other in tables if other.namespace == table.namespace]
    if near := nearest(table.name, names, n=1):
        raise TableNotFound(
            f"The lake has no table {table}. Did you mean `{table.namespace}.{near[0]}`? `factory tables` "
            "lists them."
        )
    raise unknown_table(table)


def _head(lake: Lake, table: TableName, branch: str) -> int:
    """Return the snapshot of a branch."""
    iceberg_table = lake.table(table)
    snapshot = iceberg_table.snapshot_by_name(branch)
    if snapshot is None:
        refs = iceberg_table.refs().items()
        branches = [name for name, ref in refs if ref.snapshot_ref_type == "branch" and name != "main"]
        there = f"It has {quoted(branches)}." if branches else "It has none: `factory clean` dropped them."
        raise TableNotFound(f"Table {table} has no branch `{branch}`. {there}")
    return int(snapshot.snapshot_id)


def _before(lake: Lake, table: TableName, snapshot_id: int) -> int:
    """Return the snapshot published before `snapshot_id`."""
    iceberg_table = lake.table(table)
    parent = iceberg_table.snapshot_by_id(snapshot_id).parent_snapshot_id
    while parent is not None and (snapshot := iceberg_table.snapshot_by_id(parent)) is not None:
        if lake.published_at(table, parent).lineage.content:
            return int(parent)
        parent = snapshot.parent_snapshot_id
    raise NotFound(
        f"Nothing was published of {table} before its snapshot {snapshot_id}. Name a second table to compare."
    )
