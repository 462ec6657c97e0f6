"""The blends of a lake, without a port: make, change, look up, retire, open for reading.

Making a blend resolves each source's reference to a snapshot, reads its content fingerprint, opens it as a
reader would (so what is wrong comes out now), tags the snapshots so that maintenance keeps them, and only
then stores the blend. A step that fails leaves tags at most, which making the blend again takes over. An
update reads what its parent has open, under the same tags: it costs two small objects and no table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from blender.blend import Blend
from blender.cache import SharedCache
from blender.config import BlendConfig, BlendSource, blend_config, updated
from blender.errors import BlendNotFound, BrokenBlend, InvalidBlend, SourceGone
from blender.history import Chapter, chapter_of, mixture_of
from blender.lake_pages import LakePages
from blender.live import LiveReader
from blender.records import Schedule
from blender.sources import SnapshotReader
from blender.store import BlendStore, Pins, open_store
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings

_LOG = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES = 512 << 20  # of pages and blocks read ahead

_CONTENT = "factory.content"
_TAG_ATTEMPTS = 20  # other commits to a table under way make one fail; each attempt reads it anew
_OPEN_BLENDS = 256
_OPEN_TABLES = 1024
_KNOWN_CONFIGS = 1 << 15  # a blend updated ten thousand times keeps its history at hand


@dataclass(frozen=True)
class StoredBlend:
    """A blend as it is on record."""

    id: str
    config: BlendConfig
    pins: Pins


class Blends:
    """All blends of one lake; safe for many threads."""

    def __init__(self, lake: Lake, store: BlendStore, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._lake = lake
        self._store = store
        self._pages = LakePages(lake.settings, memory_bytes)
        self._readers: SharedCache[SnapshotReader] = SharedCache(_OPEN_TABLES)
        self._live_readers: SharedCache[LiveReader] = SharedCache(_OPEN_TABLES)
        self._configs: SharedCache[BlendConfig] = SharedCache(_KNOWN_CONFIGS)
        self._blends: SharedCache[Blend] = SharedCache(_OPEN_BLENDS)

    def create(
        self, sources: Sequence[BlendSource], seed: int = 0, schedule: Schedule | None = None
    ) -> StoredBlend:
        """A blend of `sources`; the same content, weights or schedule, and seed again give the same id.

        Raises InvalidBlend, ConfigurationError for a malformed table name, and TableNotFound.
        """
        pinned = [self._pin(source) for source in sources]
        config = blend_config([source for source, _ in pinned], seed, schedule)
        return self._keep(config, [pin for _, pin in pinned])

    def considered(self, sources: Sequence[BlendSource], seed: int = 0) -> Blend:
        """The blend that `create` would make, open but not put on record; raises what it raises."""
        pinned = [self._pin(source) for source in sources]
        config = blend_config([source for source, _ in pinned], seed)
        readers = [
            self._open_source(source, snapshot, _tag_name(config.id, number))
            for number, (source, snapshot) in enumerate(pinned)
        ]
        return Blend(config, mixture_of(config, 0, self), readers)

    def update(
        self,
        parent: str,
        offset: int,
        weights: Mapping[str, int],
        add: Sequence[BlendSource] = (),
        schedule: Schedule | None = None,
    ) -> StoredBlend:
        """The blend equal to `parent` before step `offset`, from there on with `weights` by source name.

        A `schedule` takes the place of all weights. Raises BlendNotFound, and what `create` raises.
        """
        config, pins = self._store.get(parent)
        opened = self.open(parent)
        added = [self._pin(source) for source in add]
        child = updated(config, offset, weights, [source for source, _ in added], schedule)
        first = len(opened.sources)
        readers = [
            self._open_source(source, snapshot, _tag_name(child.id, number))
            for number, (source, snapshot) in enumerate(added, first)
        ]
        blend = Blend(
            child,
            opened.mixture.extended([child.piece], [child.offset]),
            [*(source.kept for source in opened.sources), *readers],
        )
        return self._keep_update(blend, parent, pins)

    def get(self, blend: str) -> StoredBlend:
        """A blend by id; raises BlendNotFound."""
        return StoredBlend(blend, *self._store.get(blend))

    def list(self, with_retired: bool = False) -> list[StoredBlend]:
        """Every blend, the oldest first; one that cannot be read is left out and told in the log."""
        stored = []
        for blend in self._store.ids():
            try:
                stored.append(self.get(blend))
            except (BrokenBlend, BlendNotFound, InvalidBlend) as error:
                _LOG.warning("A blend is left out of the list. %s", error)
        return sorted(
            (one for one in stored if with_retired or not one.pins.retired),
            key=lambda one: (one.pins.created_at, one.id),
        )

    def retire(self, blend: str) -> StoredBlend:
        """Drop the tags that keep a blend's snapshots; raises BlendNotFound.

        It is served as long as its snapshots live, and creating it again revives it.
        """
        stored = self.get(blend)
        self._store.put_pins(blend, stored.pins.model_copy(update={"retired": True}))
        for tagger, numbers in _taggers(stored):
            self._store.let_go(blend, tagger)
            if not self._is_needed(tagger):
                for number in numbers:
                    name = TableName.parse(stored.config.sources[number].table)
                    if self._lake.exists(name):
                        _untag(self._lake, name, _tag_name(tagger, number))
        return self.get(blend)

    def _is_needed(self, tagger: str) -> bool:
        """Whether a blend that is not retired reads under the tags of `tagger`."""
        return any(not self.get(one).pins.retired for one in [tagger, *self._store.holders(tagger)])

    def open(self, blend: str) -> Blend:
        """A blend ready to be read; raises BlendNotFound and SourceGone."""
        return self._blends.get(blend, lambda: self._open(blend))

    def _open(self, blend: str) -> Blend:
        config, pins = self._store.get(blend)
        tags = [
            _tag_name(tagger, number)
            for tagger, numbers in _taggers(StoredBlend(blend, config, pins))
            for number in numbers
        ]
        sources = zip(config.sources, pins.snapshots, tags, strict=True)
        readers = [self._open_source(*source) for source in sources]
        return Blend(config, mixture_of(config, pins.depth, self), readers)

    def _keep(self, config: BlendConfig, snapshots: Sequence[int]) -> StoredBlend:
        if any(source.live for source in config.sources) and self._store.has(config.id):
            # An id must not serve other rows because it was made twice: it goes on where it began.
            pins = self._store.get(config.id)[1].snapshots
            followed = zip(config.sources, snapshots, pins, strict=True)
            snapshots = [old if source.live else new for source, new, old in followed]
        readers = [
            self._open_source(source, snapshot, _tag_name(config.id, number))
            for number, (source, snapshot) in enumerate(zip(config.sources, snapshots, strict=True))
        ]
        opened = Blend(config, mixture_of(config, 0, self), readers)
        for source, reader in zip(config.sources, readers, strict=True):
            now = reader.now if isinstance(reader, LiveReader) else reader
            now.prepare(source.columns)  # what cannot be read by page comes out before it is on record
        self._tag(opened, 0)
        return self._put(opened, Pins(snapshots=_snapshots(opened), created_at=_now()))

    def _keep_update(self, blend: Blend, parent: str, parent_pins: Pins) -> StoredBlend:
        """Store an update under the tags of its parent: ten thousand of them tag as much as one.

        Its hold is on record before the parent is looked at again, and a parent is retired before its tags
        are asked for. So either the one sees the other's retirement or that sees the hold.
        """
        known = len(parent_pins.snapshots)
        tagged_by = list(parent_pins.tagged_by or ((parent, 0),))
        for tagger, _ in tagged_by:
            self._store.hold(blend.id, tagger)
        if len(blend.sources) > known:
            self._tag(blend, known)
            tagged_by.append((blend.id, known))
        pins = Pins(
            snapshots=_snapshots(blend),
            created_at=_now(),
            depth=parent_pins.depth + 1,
            tagged_by=tuple(tagged_by),
        )
        chapter = chapter_of(blend.config, pins.depth, self)
        if chapter is not None:
            self._store.put_chapter(blend.id, chapter)
        stored = self._put(blend, pins)
        if not self._store.get(parent)[1].retired:
            return stored
        self._tag(blend, 0)
        for number, source in enumerate(blend.sources):
            if source.config.live:
                self._store.saw(_tag_name(blend.id, number), source.n_rows, source.reader.snapshot_id)
        return self._put(blend, pins.model_copy(update={"tagged_by": ()}))

    def _tag(self, blend: Blend, first: int) -> None:
        for number, source in enumerate(blend.sources[first:], first):
            name = TableName.parse(source.config.table)
            _tag(self._lake, name, _pinned(source.kept), _tag_name(blend.id, number))

    def _put(self, blend: Blend, pins: Pins) -> StoredBlend:
        self._store.put(blend.config, pins)
        self._configs.get(blend.id, lambda: blend.config)
        self._blends.get(blend.id, lambda: blend)
        return StoredBlend(blend.id, blend.config, pins)

    def _pin(self, source: BlendSource) -> tuple[BlendSource, int]:
        table = self._lake.table(TableName.parse(source.table))
        snapshot = _resolve(table, source)
        content = _live_content(table) if source.live else _content(snapshot)
        if not content:
            raise InvalidBlend(
                f"Snapshot {snapshot.snapshot_id} of table {source.table} has no content fingerprint. "
                "Blend a snapshot that was published through the factory."
            )
        if source.content and source.content != content and source.live:
            raise InvalidBlend(
                f"Live table {source.table} is {content}, not {source.content}. Leave `content` out, or name "
                "the table that is."
            )
        if source.content and source.content != content:
            raise InvalidBlend(
                f"Table {source.table} has content {content} at snapshot {snapshot.snapshot_id}, "
                f"not {source.content}. Name the snapshot that has it, or leave `content` out."
            )
        kept = {"content": content, "snapshot": None, "branch": None, "tag": None}
        return source.model_copy(update=kept), snapshot.snapshot_id

    def _find(self, source: BlendSource, snapshot: int) -> tuple[Table, int]:
        """The pinned snapshot, or another of the same content where that one is gone."""
        table = self._lake.table(TableName.parse(source.table))
        pinned = table.snapshot_by_id(snapshot)
        if pinned is not None and _content(pinned) == source.content:
            return table, snapshot
        same = [one for one in table.snapshots() if _content(one) == source.content]
        if not same:
            raise SourceGone(
                f"Source `{source.name}`: table {source.table} no longer has snapshot {snapshot}, nor "
                f"another with content {source.content}. Materialize it again, or blend what is there."
            )
        return table, max(same, key=lambda one: one.sequence_number or 0).snapshot_id

    def _open_source(self, source: BlendSource, snapshot: int, tag: str) -> SnapshotReader | LiveReader:
        """The reader of a source that is pinned to a snapshot, which `tag` keeps."""
        if not source.live:
            return self._reader(self._find(source, snapshot))

        def load() -> Table:
            table = self._lake.table(TableName.parse(source.table))
            if _live_content(table) != source.content:
                raise SourceGone(
                    f"Live source `{source.name}`: table {source.table} was dropped and made anew. "
                    "Make another blend of what is there."
                )
            return table

        def follow() -> LiveReader:
            progress = _Progress(self._store, tag)
            return LiveReader(source.name, snapshot, source.window_rows, load, self._at, progress)

        return self._live_readers.get((tag, source.window_rows), follow)

    def _at(self, table: Table, snapshot: int) -> SnapshotReader:
        return self._reader((table, snapshot))

    def _reader(self, found: tuple[Table, int]) -> SnapshotReader:
        table, snapshot = found
        key = (str(table.metadata.table_uuid), snapshot)
        return self._readers.get(key, lambda: SnapshotReader(table, snapshot, self._pages))

    def config(self, blend: str) -> BlendConfig:
        """A blend's config; raises BlendNotFound."""
        return self._configs.get(blend, lambda: self._store.get(blend)[0])

    def chapter(self, blend: str) -> Chapter | None:
        """What a blend and its nearest ancestors plan, where that is on record."""
        return self._store.chapter(blend)


@dataclass(frozen=True)
class _Progress:
    """How far the live source under a tag was read, on record beside the blends."""

    store: BlendStore
    tag: str

    def seen(self) -> int | None:
        return self.store.seen(self.tag)

    def saw(self, rows: int, snapshot: int) -> None:
        self.store.saw(self.tag, rows, snapshot)


def open_blends(settings: Settings, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Blends:
    """The blends of the lake that `settings` names, reading under `memory_bytes` of pages."""
    return Blends(Lake(settings), open_store(settings), memory_bytes)


def _resolve(table: Table, source: BlendSource) -> Snapshot:
    if source.snapshot is not None:
        snapshot, asked = table.snapshot_by_id(source.snapshot), f"snapshot {source.snapshot}"
    elif source.branch is not None or source.tag is not None:
        name = source.branch or source.tag or ""
        snapshot, asked = table.snapshot_by_name(name), f"{'branch' if source.branch else 'tag'} `{name}`"
    else:
        snapshot, asked = table.current_snapshot(), "published snapshot"
    if snapshot is None:
        raise InvalidBlend(
            f"Table {source.table} has no {asked}. Name one of: {', '.join(sorted(table.refs())) or '-'}."
        )
    return snapshot


def _content(snapshot: Snapshot) -> str:
    return str(snapshot.summary.additional_properties.get(_CONTENT, "")) if snapshot.summary else ""


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _snapshots(blend: Blend) -> tuple[int, ...]:
    return tuple(_pinned(source.kept) for source in blend.sources)


def _pinned(reader: SnapshotReader | LiveReader) -> int:
    return reader.pinned if isinstance(reader, LiveReader) else reader.snapshot_id


def _live_content(table: Table) -> str:
    return f"live-{table.metadata.table_uuid}"


def _taggers(stored: StoredBlend) -> Iterator[tuple[str, range]]:
    """The blends whose tags keep the snapshots of a blend, and the numbers of the sources each keeps."""
    taggers = stored.pins.tagged_by or ((stored.id, 0),)
    ends = [first for _, first in taggers[1:]] + [len(stored.config.sources)]
    for (tagger, first), end in zip(taggers, ends, strict=True):
        yield tagger, range(first, end)


def _tag_name(blend: str, source: int) -> str:
    return f"blend_{blend}_{source}"


def _tag(lake: Lake, name: TableName, snapshot: int, tag: str) -> None:
    for attempt in range(_TAG_ATTEMPTS):
        table = lake.table(name)
        held = table.refs().get(tag)
        if held is not None and held.snapshot_id == snapshot:
            return
        try:
            if held is not None:
                table.manage_snapshots().remove_tag(tag).commit()
                table = table.refresh()
            table.manage_snapshots().create_tag(snapshot, tag).commit()
            return
        except CommitFailedException:
            if attempt + 1 == _TAG_ATTEMPTS:
                raise


def _untag(lake: Lake, name: TableName, tag: str) -> None:
    for attempt in range(_TAG_ATTEMPTS):
        table = lake.table(name)
        if tag not in table.refs():
            return
        try:
            table.manage_snapshots().remove_tag(tag).commit()
            return
        except CommitFailedException:
            if attempt + 1 == _TAG_ATTEMPTS:
                raise
