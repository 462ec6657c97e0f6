"""Tags of a blend on its snapshots, by which maintenance keeps them: `blend_<id>_<number of the source>`."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from factory.lake.names import TableName
from factory.lake.tables import Lake

_ATTEMPTS = 20  # other commits to a table under way make one fail; each attempt reads it anew


def tag_name(blend: str, source: int) -> str:
    """The tag under which a blend's source is kept."""
    return f"blend_{blend}_{source}"


def tag(lake: Lake, name: TableName, snapshots: Mapping[str, int]) -> Table:
    """Give a table all these tags in one commit, and none where it has them; the table as it is then."""
    for attempt in range(_ATTEMPTS):
        table = lake.table(name)
        held = {tag: of.snapshot_id for tag, of in table.refs().items()}
        wanted = {tag: snapshot for tag, snapshot in snapshots.items() if held.get(tag) != snapshot}
        if not wanted:
            return table
        try:
            _remove(table, [tag for tag in wanted if tag in held])
            made = table.manage_snapshots()
            for tag, snapshot in wanted.items():
                made.create_tag(snapshot, tag)
            made.commit()
        except CommitFailedException:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return table
    raise AssertionError("the last attempt returns or raises")


def untag(lake: Lake, name: TableName, tags: list[str]) -> None:
    """Take these tags from a table."""
    for attempt in range(_ATTEMPTS):
        table = lake.table(name)
        try:
            _remove(table, [tag for tag in tags if tag in table.refs()])
        except CommitFailedException:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def _remove(table: Table, tags: list[str]) -> None:
    if tags:
        removed = table.manage_snapshots()
        for tag in tags:
            removed.remove_tag(tag)
        removed.commit()
