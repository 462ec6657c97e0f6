"""Tags that keep the snapshots of blends from expiring, added before a blend is stored.

A call that creates a blend may fail or run late between the first tag and the stored blend; its tags are then
removed. Another call may create the same blend, under the same tags, at that moment. So the failed call
removes its tags first and then looks for the blend, and a successful call stores the blend first and then
looks for its tags: the second of the two restores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blender.call_context import CallContext, use_context, within_deadline
from blender.catalog.store import BlendStore
from blender.catalog.tags import tag, tags_of, untag
from blender.errors import BlendNotFound, BrokenBlend
from factory.lake.names import TableName
from factory.lake.tables import Lake

if TYPE_CHECKING:
    from pyiceberg.table import Table

Pinned = tuple[int, str, int]
"""A source's number in its blend, its table, and the snapshot it is pinned to."""


class SnapshotKeeper:
    """The tags of the blends of one lake."""

    def __init__(self, lake: Lake, store: BlendStore) -> None:
        self._lake, self._store = lake, store

    @contextmanager
    def keeping(self, blend: str, pinned: Sequence[Pinned]) -> Iterator[dict[str, Table]]:
        """Tag these snapshots for a body that stores `blend`; yields the tagged tables.

        If the body fails, the added tags are removed.
        """
        wanted = tags_of(blend, pinned)
        added: dict[str, tuple[str, ...]] = {}
        tables: dict[str, Table] = {}
        try:
            for name, tags in within_deadline(list(wanted.items()), "tables tagged"):
                tagged = tag(self._lake, TableName.parse(name), tags)
                tables[name], added[name] = tagged.table, tagged.added
            yield tables
        except BaseException:
            with use_context(CallContext()):  # a cancelled call must not stop the removal
                self._remove_added(blend, wanted, added)
            raise
        self._restore(wanted, tables)

    def release(self, tags: Mapping[str, Sequence[str]]) -> None:
        """Remove tags from their tables; a missing table needs nothing."""
        for name, of_table in tags.items():
            table = TableName.parse(name)
            if self._lake.exists(table):
                untag(self._lake, table, of_table)

    def is_needed(self, tagger: str) -> bool:
        """Whether any blend under the tags of `tagger` is not retired."""
        return any(self._is_served(blend) for blend in [tagger, *self._store.holders(tagger)])

    def _is_served(self, blend: str) -> bool:
        try:
            return not self._store.get(blend)[1].retired
        except BlendNotFound:  # never stored, or about to be stored: then it reads its parent again
            return False
        except BrokenBlend:  # perhaps somebody restores it
            return True

    def _remove_added(
        self, blend: str, wanted: Mapping[str, Mapping[str, int]], added: Mapping[str, Sequence[str]]
    ) -> None:
        if self._is_served(blend):
            return
        self.release({name: tags for name, tags in added.items() if tags})
        if self._is_served(blend):
            for name, tags in added.items():
                if tags:
                    tag(self._lake, TableName.parse(name), wanted[name])

    def _restore(self, wanted: Mapping[str, Mapping[str, int]], tables: Mapping[str, Table]) -> None:
        """Tag tables again that were committed to since: a failed call may have removed the tags."""
        files = self._lake.metadata_files([TableName.parse(name) for name in tables])
        for name, table in tables.items():
            if files.get(TableName.parse(name)) != table.metadata_location:
                tag(self._lake, TableName.parse(name), wanted[name])
