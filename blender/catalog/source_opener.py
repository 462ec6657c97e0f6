"""Readers of a blend's sources, with as few queries to the catalog as possible.

A blend records the snapshot of each source, and the table's newest metadata file says whether the table still
has it. Cached facts of that file (`blender.rows.snapshot_facts`) replace loading the table: opening three
hundred known sources takes one query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from blender.call_context import within_deadline
from blender.catalog.cache import SharedCache
from blender.catalog.store import BlendStore
from blender.errors import InvalidBlend, SourceGone
from blender.opened.source import OpenedSource
from blender.records import Source
from blender.rows.index.snapshot_index import ORDINAL
from blender.rows.lake_pages import LakePages
from blender.rows.live.live_progress import LiveProgress
from blender.rows.live.live_reader import LiveReader
from blender.rows.snapshot_facts import SnapshotFacts, content_of, facts_of, pack_facts, read_facts
from blender.rows.snapshot_reader import TOKENS, SnapshotReader
from factory.errors import ConfigurationError, TableNotFound
from factory.lake.catalog_file import table_files
from factory.lake.names import TableName
from factory.lake.packed_tables import unknown_sentence, unpacked_sentence
from factory.lake.tables import Lake, unknown_table

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

Reader = SnapshotReader | LiveReader

_OPEN_TABLES = 1024
_MANY = 16  # least sources for which a bundle saves time


class SourceOpener:
    """Opens the sources of blends of one lake; safe for many threads."""

    def __init__(self, lake: Lake, store: BlendStore, pages: LakePages) -> None:
        self._lake, self._store, self._pages = lake, store, pages
        self._readers: SharedCache[SnapshotReader] = SharedCache(_OPEN_TABLES)
        self._live_readers: SharedCache[LiveReader] = SharedCache(_OPEN_TABLES)

    def view(self) -> CatalogView:
        """The current tables of the lake."""
        return CatalogView(self, self._lake)

    def save_facts(self, table: Table, source: Source, pinned: int, facts: SnapshotFacts) -> None:
        """Cache the facts of the snapshot to which a source is pinned, from the metadata of `table`."""
        indexes = self._pages.indexes
        path = indexes.facts(source.table, pinned, source.content)
        indexes.put(path, pack_facts(facts, table.metadata_location))

    def load_facts(self, metadata_file: str | None, source: Source, pinned: int) -> SnapshotFacts | None:
        """The cached facts of a pinned snapshot, if they come from this metadata file."""
        if metadata_file is None:
            return None
        indexes = self._pages.indexes
        path = indexes.facts(source.table, pinned, source.content)
        found = read_facts(indexes.get(path), metadata_file)
        if found is None:
            indexes.forget(path)
            found = read_facts(indexes.get(path), metadata_file)
        return found

    def load_bundle(self, sources: Sequence[Source], snapshots: Sequence[int]) -> None:
        """Load the bundle of the index files of many sources, if `save_bundle` saved one."""
        if len(sources) >= _MANY:
            self._pages.indexes.load_bundle(*_opened(sources, snapshots))

    def bundle_missed(self, n_sources: int) -> bool:
        """Whether the bundle was incomplete for a blend of this size."""
        return n_sources >= _MANY and self._pages.indexes.bundle_missed

    def save_bundle(self, sources: Sequence[OpenedSource], snapshots: Sequence[int]) -> None:
        """Save the index files that opening these sources reads as one bundle."""
        if len(sources) < _MANY:
            return
        indexes, paths = self._pages.indexes, []
        for source, snapshot in zip(sources, snapshots, strict=True):
            if not source.config.live:
                paths.append(indexes.facts(source.config.table, snapshot, source.config.content))
                paths += source.reader.kept_files(source.config.columns)
        indexes.save_bundle(
            list(dict.fromkeys(paths)), *_opened([source.config for source in sources], snapshots)
        )

    def reader(self, facts: SnapshotFacts, view: CatalogView) -> SnapshotReader:
        """The shared reader of a snapshot."""
        return self._readers.get(
            facts.key, lambda: SnapshotReader(facts, self._pages, lambda: view.table(facts.table))
        )

    def follow(self, source: Source, snapshot: int, tag: str) -> LiveReader:
        """The shared reader of a live source, from the snapshot under `tag` on."""

        def load() -> Table:
            table = self._lake.table(TableName.parse(source.table))
            if live_content(table) != source.content:
                raise SourceGone(
                    f"Live source `{source.name}`: table {source.table} was dropped and created again. "
                    "Make another blend of the new table."
                )
            return table

        def at(table: Table, snapshot: int) -> SnapshotReader:
            facts = facts_of(table, snapshot)
            return self._readers.get(facts.key, lambda: SnapshotReader(facts, self._pages, lambda: table))

        def open_live() -> LiveReader:
            progress = _Progress(self._store, tag)
            tokens = TOKENS in source.columns
            return LiveReader(source.name, snapshot, source.window_rows, load, at, progress, tokens=tokens)

        return self._live_readers.get((tag, source.window_rows), open_live)


class CatalogView:
    """The tables of a lake while one blend is created or opened: each is loaded at most once."""

    def __init__(self, opener: SourceOpener, lake: Lake) -> None:
        self._opener, self._lake = opener, lake
        self._tables: dict[str, Table] = {}
        self._facts: dict[tuple[str, int, str], SnapshotFacts] = {}
        self._resolved: dict[tuple[str, int | None, str | None, str | None], Snapshot] = {}

    def table(self, name: str) -> Table:
        """A table by name; raises TableNotFound."""
        if name not in self._tables:
            self._tables[name] = self._lake.table(TableName.parse(name))
        return self._tables[name]

    def pin(self, source: Source) -> tuple[Source, int]:
        """The source with its content, and its snapshot; raises InvalidBlend and TableNotFound."""
        table = self._packed_table(source.table)
        key = (source.table, source.snapshot, source.branch, source.tag)
        if key not in self._resolved:
            self._resolved[key] = _resolve(table, source)
        snapshot = self._resolved[key]
        content = live_content(table) if source.live else content_of(snapshot)
        if not content:
            raise InvalidBlend(
                f"Snapshot {snapshot.snapshot_id} of table {source.table} has no content fingerprint. "
                "Blend a snapshot that was published through the factory."
            )
        if source.content and source.content != content and source.live:
            raise InvalidBlend(
                f"Live table {source.table} is {content}, not {source.content}. Leave `content` out, or name "
                "the right table."
            )
        if source.content and source.content != content:
            raise InvalidBlend(
                f"Table {source.table} has content {content} at snapshot {snapshot.snapshot_id}, "
                f"not {source.content}. Name the snapshot that has it, or leave `content` out."
            )
        pinned = replace(source, content=content, snapshot=None, branch=None, tag=None)
        return pinned, snapshot.snapshot_id

    @cached_property
    def _files_in_catalog(self) -> Mapping[TableName, str] | None:
        """The tables in the file of an embedded catalog, read without PyIceberg; None without such a file."""
        return table_files(self._lake.settings)

    def _packed_table(self, name: str) -> Table:
        """The table of a new blend; raises InvalidBlend and TableNotFound, which suggest another one."""
        try:
            files = self._files_in_catalog
            if files is not None and TableName.parse(name) not in files:
                raise unknown_table(TableName.parse(name))
            table = self.table(name)
        except TableNotFound as error:
            raise TableNotFound(unknown_sentence(name, self._lake.names_in_file())) from error
        except ConfigurationError as error:
            if not name:
                raise
            raise InvalidBlend(unknown_sentence(name, self._lake.names_in_file())) from error
        if ORDINAL not in table.schema().column_names:
            raise InvalidBlend(unpacked_sentence(name, self._lake.names()))
        return table

    def open(self, sources: Sequence[Source], snapshots: Sequence[int], tags: Sequence[str]) -> list[Reader]:
        """Readers of sources at their pinned snapshots, which `tags` keep; raises SourceGone."""
        fixed = {source.table for source in sources if not source.live} - self._tables.keys()
        files = self._lake.metadata_files([TableName.parse(table) for table in fixed])
        requested = list(zip(sources, snapshots, tags, strict=True))
        return [
            self._opener.follow(source, snapshot, tag)
            if source.live
            else self._opener.reader(
                self._facts_of(source, snapshot, files.get(TableName.parse(source.table))), self
            )
            for source, snapshot, tag in within_deadline(requested, "sources opened")
        ]

    def _facts_of(self, source: Source, snapshot: int, metadata_file: str | None) -> SnapshotFacts:
        key = (source.table, snapshot, source.content)
        if key not in self._facts:
            self._facts[key] = self._found_facts(source, snapshot, metadata_file)
        return self._facts[key]

    def _found_facts(self, source: Source, snapshot: int, metadata_file: str | None) -> SnapshotFacts:
        cached = self._opener.load_facts(metadata_file, source, snapshot)
        if cached is not None:
            return cached
        table = self.table(source.table)
        facts = facts_of(table, _found(table, source, snapshot))
        self._opener.save_facts(table, source, snapshot, facts)
        return facts


@dataclass(frozen=True)
class _Progress:
    """The progress of the live source under a tag, recorded with the blends."""

    store: BlendStore
    tag: str

    def last(self) -> LiveProgress | None:
        return self.store.progress(self.tag)

    def record(self, progress: LiveProgress) -> None:
        self.store.record_progress(self.tag, progress)


def _opened(sources: Sequence[Source], snapshots: Sequence[int]) -> list[str]:
    return [f"{one.table} {at} {one.columns}" for one, at in zip(sources, snapshots, strict=True)]


def live_content(table: Table) -> str:
    """The content of a live table: its UUID in place of a fingerprint."""
    return f"live-{table.metadata.table_uuid}"


def _found(table: Table, source: Source, snapshot: int) -> int:
    """The pinned snapshot, or if it is gone another one with the same content."""
    pinned = table.snapshot_by_id(snapshot)
    if pinned is not None and content_of(pinned) == source.content:
        return snapshot
    same = [snapshot for snapshot in table.snapshots() if content_of(snapshot) == source.content]
    if not same:
        raise SourceGone(
            f"Source `{source.name}`: table {source.table} no longer has snapshot {snapshot}, nor "
            f"another with content {source.content}. Materialize it again, or blend what is there."
        )
    return max(same, key=lambda one: one.sequence_number or 0).snapshot_id


def _resolve(table: Table, source: Source) -> Snapshot:
    if source.snapshot is not None:
        snapshot, reference = table.snapshot_by_id(source.snapshot), f"snapshot {source.snapshot}"
    elif source.branch is not None or source.tag is not None:
        name = source.branch or source.tag or ""
        snapshot, reference = table.snapshot_by_name(name), f"{'branch' if source.branch else 'tag'} `{name}`"
    else:
        snapshot, reference = table.current_snapshot(), "published snapshot"
    if snapshot is None:
        raise InvalidBlend(
            f"Table {source.table} has no {reference}. Name one of: {', '.join(sorted(table.refs())) or '-'}."
        )
    return snapshot
