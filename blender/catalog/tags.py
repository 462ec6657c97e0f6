"""Tags that keep a blend's snapshots from maintenance: `blend_<id>_<number of a source>`.

A table has one tag per snapshot that the blend reads, numbered after the first source that reads it. All tags
of a table change in one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException

from blender.catalog.refusals import naming_folder
from blender.errors import SourceGone
from factory.lake.catalog import asking_catalog
from factory.lake.names import TableName
from factory.lake.tables import Lake

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableUpdate

_ATTEMPTS = 20  # a concurrent commit to the table fails ours; each attempt reads the table again


@dataclass(frozen=True)
class Tagged:
    """A tagged table, and the tags that it did not have before."""

    table: Table
    added: tuple[str, ...] = ()


def tag_name(blend: str, source: int) -> str:
    """The tag of a snapshot; `source` is the number of its first source."""
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
    added: list[str] = []

    def updates_of(table: Table) -> list[TableUpdate]:
        tagged = {tag: ref.snapshot_id for tag, ref in table.refs().items()}
        missing = {tag: snapshot for tag, snapshot in snapshots.items() if tagged.get(tag) != snapshot}
        available = {snapshot.snapshot_id for snapshot in table.snapshots()}
        for snapshot in missing.values():
            if snapshot not in available:
                raise SourceGone(
                    f"Snapshot {snapshot} of table {name} expired before the blend could keep it. Create the "
                    "blend again from a snapshot that is there."
                )
        added[:] = [tag for tag in missing if tag not in tagged]
        return [_tagging(tag, snapshot) for tag, snapshot in missing.items()]

    return Tagged(_change(lake, name, updates_of), tuple(added))


def untag(lake: Lake, name: TableName, tags: Collection[str]) -> None:
    """Remove these tags from a table."""

    from pyiceberg.table.update import RemoveSnapshotRefUpdate

    def updates_of(table: Table) -> list[TableUpdate]:
        refs = table.refs()
        return [RemoveSnapshotRefUpdate(ref_name=tag) for tag in tags if tag in refs]

    _change(lake, name, updates_of)


def _change(lake: Lake, name: TableName, updates_of: Callable[[Table], list[TableUpdate]]) -> Table:
    """Commit the updates that the current table needs, if any; return the table."""
    for attempt in range(_ATTEMPTS):
        table = lake.table(name)
        updates = updates_of(table)
        try:
            if updates:
                _commit(lake, table, updates)
            return table
        except CommitFailedException:
            if attempt + 1 == _ATTEMPTS:
                raise
    raise AssertionError("the last attempt returns or raises")


def _tagging(tag: str, snapshot: int) -> TableUpdate:
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.update import SetSnapshotRefUpdate

    return SetSnapshotRefUpdate(ref_name=tag, type=SnapshotRefType.TAG, snapshot_id=snapshot)


def _commit(lake: Lake, table: Table, updates: list[TableUpdate]) -> None:
    """Commit all `updates` together; PyIceberg's own builder copies the metadata for each of them."""
    from pyiceberg.table.update import AssertTableUUID

    same = AssertTableUUID(uuid=table.metadata.table_uuid)
    metadata = f"{table.location()}/metadata"
    with asking_catalog(lake.settings), naming_folder(lake.settings, metadata):
        committed = lake.catalog.commit_table(table, (same,), tuple(updates))
    table.metadata, table.metadata_location = committed.metadata, committed.metadata_location
