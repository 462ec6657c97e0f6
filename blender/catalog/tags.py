"""Tags that keep a blend's snapshots from maintenance: `blend_<id>_<number of a source>`.

A table has one tag per snapshot that the blend reads, numbered after the first source that reads it. All tags
of a table change in one commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import (
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
    TableUpdate,
)

from blender.errors import SourceGone
from factory.lake.names import TableName
from factory.lake.tables import Lake

_ATTEMPTS = 20  # a concurrent commit to the table fails ours; each attempt reads the table anew


@dataclass(frozen=True)
class Tagged:
    """A tagged table, and the tags that it did not have before."""

    table: Table
    added: tuple[str, ...] = ()


def tag_name(blend: str, source: int) -> str:
    """The tag of a snapshot whose first source has this number."""
    return f"blend_{blend}_{source}"


def tags_of(blend: str, pinned: Iterable[tuple[int, str, int]]) -> dict[str, dict[str, int]]:
    """The snapshot of each tag, by table, from (number of a source, table, snapshot) in ascending order."""
    found: dict[str, dict[int, str]] = {}
    for number, table, snapshot in pinned:
        found.setdefault(table, {}).setdefault(snapshot, tag_name(blend, number))
    return {table: {tag: snapshot for snapshot, tag in tags.items()} for table, tags in found.items()}


def tag(lake: Lake, name: TableName, snapshots: Mapping[str, int]) -> Tagged:
    """Tag a table in one commit, or in none if it has all tags.

    Raises SourceGone if a snapshot has expired meanwhile.
    """
    for attempt in range(_ATTEMPTS):
        table = lake.table(name)
        held = {tag: of.snapshot_id for tag, of in table.refs().items()}
        wanted = {tag: snapshot for tag, snapshot in snapshots.items() if held.get(tag) != snapshot}
        if not wanted:
            return Tagged(table)
        there = {snapshot.snapshot_id for snapshot in table.snapshots()}
        for snapshot in wanted.values():
            if snapshot not in there:
                raise SourceGone(
                    f"Snapshot {snapshot} of table {name} expired before the blend could keep it. Create the "
                    "blend again from a snapshot that is there."
                )
        try:
            _commit(lake, table, [_tagging(tag, snapshot) for tag, snapshot in wanted.items()])
        except CommitFailedException:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return Tagged(table, tuple(tag for tag in wanted if tag not in held))
    raise AssertionError("the last attempt returns or raises")


def untag(lake: Lake, name: TableName, tags: Collection[str]) -> None:
    """Remove these tags from a table."""
    for attempt in range(_ATTEMPTS):
        table = lake.table(name)
        refs = table.refs()
        found = [tag for tag in tags if tag in refs]
        if not found:
            return
        try:
            _commit(lake, table, [RemoveSnapshotRefUpdate(ref_name=tag) for tag in found])
        except CommitFailedException:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def _tagging(tag: str, snapshot: int) -> TableUpdate:
    return SetSnapshotRefUpdate(ref_name=tag, type=SnapshotRefType.TAG, snapshot_id=snapshot)


def _commit(lake: Lake, table: Table, updates: list[TableUpdate]) -> None:
    """Commit all `updates` together; PyIceberg's own builder copies the metadata for each of them."""
    same = AssertTableUUID(uuid=table.metadata.table_uuid)
    made = lake.catalog.commit_table(table, (same,), tuple(updates))
    table.metadata, table.metadata_location = made.metadata, made.metadata_location
