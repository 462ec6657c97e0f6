"""Snapshots that blends need are kept from expiring: by tags, made before a blend is on record.

Whoever defines a blend may run out of time, or fail, between the first tag and the record. Its tags are then
taken back, so that nothing is left behind. Others may define the same blend at that moment under the same
tags. So a tag is taken back before it is asked whether the blend is on record, and tags are looked at again
once it is: whichever comes second gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pyiceberg.table import Table

from blender.call_context import CallContext, use_context, within_deadline
from blender.catalog.store import BlendStore
from blender.catalog.tags import tag, tags_of, untag
from blender.errors import BlendNotFound, BrokenBlend
from factory.lake.names import TableName
from factory.lake.tables import Lake

Pinned = tuple[int, str, int]
"""A source's number in its blend, its table, and the snapshot it is pinned to."""


class Keeper:
    """The tags of the blends of one lake."""

    def __init__(self, lake: Lake, store: BlendStore) -> None:
        self._lake, self._store = lake, store

    @contextmanager
    def keeping(self, blend: str, pinned: Sequence[Pinned]) -> Iterator[dict[str, Table]]:
        """Tag these snapshots, for a body that puts `blend` on record; gives the tables as they are then.

        Where it ends otherwise, the tags that were added are gone.
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
            with use_context(CallContext()):  # whoever has left waits for nothing
                self._take_back(blend, wanted, added)
            raise
        self._look_again(wanted, tables)

    def let_go(self, tags: Mapping[str, Sequence[str]]) -> None:
        """Take tags from their tables, by table; one that is gone needs none."""
        for name, of_table in tags.items():
            table = TableName.parse(name)
            if self._lake.exists(table):
                untag(self._lake, table, of_table)

    def is_needed(self, tagger: str) -> bool:
        """Whether a blend that is not retired reads under the tags of `tagger`."""
        return any(self._is_served(blend) for blend in [tagger, *self._store.holders(tagger)])

    def _is_served(self, blend: str) -> bool:
        try:
            return not self._store.get(blend)[1].retired
        except BlendNotFound:  # never put on record, or about to be: then it looks at its parent again
            return False
        except BrokenBlend:  # perhaps it is mended
            return True

    def _take_back(
        self, blend: str, wanted: Mapping[str, Mapping[str, int]], added: Mapping[str, Sequence[str]]
    ) -> None:
        if self._is_served(blend):
            return
        self.let_go({name: tags for name, tags in added.items() if tags})
        if self._is_served(blend):
            for name, tags in added.items():
                if tags:
                    tag(self._lake, TableName.parse(name), wanted[name])

    def _look_again(self, wanted: Mapping[str, Mapping[str, int]], tables: Mapping[str, Table]) -> None:
        """Tag tables anew that were committed to since they were tagged: perhaps somebody took tags back."""
        files = self._lake.metadata_files([TableName.parse(name) for name in tables])
        for name, table in tables.items():
            if files.get(TableName.parse(name)) != table.metadata_location:
                tag(self._lake, TableName.parse(name), wanted[name])
