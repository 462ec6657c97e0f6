"""The blends of a lake, without a port: create, update, look up, retire, open for reading.

Creating a blend resolves each source's reference to a snapshot, reads its content fingerprint, opens it as a
reader would (so that errors show now), tags the snapshots so that maintenance keeps them, and only then
stores the blend. A failed, cancelled or late call leaves no tag. A killed process leaves at most tags, and
creating the blend again adopts them. An update uses the open readers and the tags of its parent: it costs two
small objects and no table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from blender.call_context import CallContext, current_context, use_context, within_deadline
from blender.catalog.cache import SharedCache
from blender.catalog.pinning import Pinned, SnapshotKeeper
from blender.catalog.source_opener import CatalogView, Reader, SourceOpener
from blender.catalog.store import BlendStore, Pins, open_store
from blender.catalog.tags import tag_name
from blender.errors import BlendNotFound, BrokenBlend, InvalidBlend
from blender.opened.agreement import require_agreement, require_no_validation_by_accident
from blender.opened.blend import Blend
from blender.records import Schedule, Source
from blender.rows.lake_pages import LakePages
from blender.rows.live.live_reader import LiveReader
from blender.spec.config import BlendConfig, blend_config, updated
from blender.spec.history import HistoryBlock, history_block_of, mixture_of
from blender.spec.source import wellformed
from factory.lake.tables import Lake
from factory.settings import Settings

if TYPE_CHECKING:
    from pyiceberg.table import Table

_LOG = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES = 512 << 20  # of pages in the cache

_OPEN_BLENDS = 256
_KNOWN_CONFIGS = 1 << 15  # enough for the history of a blend with ten thousand updates


@dataclass(frozen=True)
class StoredBlend:
    """A blend on record."""

    id: str
    config: BlendConfig
    pins: Pins


class Blends:
    """All blends of one lake; safe for many threads."""

    def __init__(self, lake: Lake, store: BlendStore, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._store = store
        self._keeper = SnapshotKeeper(lake, store)
        self._opener = SourceOpener(lake, store, LakePages(lake.settings, memory_bytes))
        self._configs: SharedCache[BlendConfig] = SharedCache(_KNOWN_CONFIGS)
        self._blends: SharedCache[Blend] = SharedCache(_OPEN_BLENDS)

    def create(
        self, sources: Sequence[Source], seed: int = 0, schedule: Schedule | None = None, *, pad: bool = False
    ) -> StoredBlend:
        """Create a blend of `sources`; equal content, weights or schedule, and seed give an equal id.

        `pad` allows rows of different lengths. Raises InvalidBlend, ConfigurationError for a malformed table
        name, and TableNotFound.
        """
        view = self._opener.view()
        pinned, snapshots = _pin(view, sources)
        return self._keep(blend_config(pinned, seed, schedule, pad=pad), snapshots, view)

    def considered(
        self, sources: Sequence[Source], seed: int = 0, schedule: Schedule | None = None, *, pad: bool = False
    ) -> Blend:
        """The blend that `create` would store, opened but not stored; raises the errors of `create`."""
        view = self._opener.view()
        pinned, snapshots = _pin(view, sources)
        return self._open_new(blend_config(pinned, seed, schedule, pad=pad), snapshots, view)

    def update(
        self,
        parent: str,
        offset: int,
        weights: Mapping[str, int],
        add: Sequence[Source] = (),
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> StoredBlend:
        """Create the blend equal to `parent` before step `offset`, with new `weights` from there on.

        A `schedule` replaces all weights. Raises BlendNotFound and the errors of `create`.
        """
        config, pins = self._store.get(parent)
        opened = self.open(parent)
        view = self._opener.view()
        added, snapshots = _pin(view, add)
        child = updated(config, offset, weights, added, schedule, pad=pad)
        known = len(opened.sources)
        readers = [source.source_reader for source in opened.sources]
        if added:  # the parent's own sources agreed when it was created, perhaps under other rules
            require_no_validation_by_accident(child.sources)
            readers += view.open(child.sources[known:], snapshots, _tags(child)[known:])
            require_agreement(child.sources, readers, pad=child.pad)
        blend = Blend(child, opened.order.mixture.extended([child.piece], [child.offset]), readers)
        blend.require_steps()
        self._prepare(blend, known)
        return self._keep_update(blend, parent, pins)

    def get(self, blend: str) -> StoredBlend:
        """A blend by id; raises BlendNotFound."""
        return StoredBlend(blend, *self._store.get(blend))

    def list(self, with_retired: bool = False) -> list[StoredBlend]:
        """Every blend, oldest first; an unreadable one is left out and logged."""
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

        A retired blend can be read until its snapshots expire, and creating it again revives it.
        """
        stored = self.get(blend)
        self._store.put_pins(blend, stored.pins.model_copy(update={"retired": True}))
        for tagger, numbers in _taggers(stored):
            self._store.release(blend, tagger)
            if not self._keeper.is_needed(tagger):
                of_tables: dict[str, list[str]] = {}
                for number in numbers:
                    table = stored.config.sources[number].table
                    of_tables.setdefault(table, []).append(tag_name(tagger, number))
                self._keeper.release(of_tables)
        return self.get(blend)

    def open(self, blend: str) -> Blend:
        """A blend ready to be read; raises BlendNotFound and SourceGone."""
        return self._blends.get(blend, lambda: self._open(blend))

    def _open(self, blend: str) -> Blend:
        config, pins = self._store.get(blend)
        taggers = _taggers(StoredBlend(blend, config, pins))
        tags = [tag_name(tagger, number) for tagger, numbers in taggers for number in numbers]
        self._opener.load_bundle(config.sources, pins.snapshots)
        readers = self._opener.view().open(config.sources, pins.snapshots, tags)
        opened = Blend(config, mixture_of(config, pins.depth, self), readers)
        if self._opener.bundle_missed(len(readers)):
            self._opener.save_bundle(opened.sources, pins.snapshots)
        return opened

    def _keep(self, config: BlendConfig, snapshots: Sequence[int], view: CatalogView) -> StoredBlend:
        if any(source.live for source in config.sources) and self._store.has(config.id):
            # Creating a live blend again must not change its rows: it keeps its first snapshots.
            pins = self._store.get(config.id)[1].snapshots
            followed = zip(config.sources, snapshots, pins, strict=True)
            snapshots = [old if source.live else new for source, new, old in followed]
        opened = self._open_new(config, snapshots, view)
        self._prepare(opened)
        with self._keeper.keeping(config.id, _pinned(opened)) as tables:
            self._keep_facts(opened, tables)
            self._opener.save_bundle(opened.sources, _snapshots(opened))
            current_context().check()
            created_at = self._created_at(config.id)
            return self._put(opened, Pins(snapshots=_snapshots(opened), created_at=created_at))

    def _created_at(self, blend: str) -> str:
        """When a blend was created first, as far as that can be read; now for a new one."""
        try:
            return self._store.get(blend)[1].created_at
        except (BlendNotFound, BrokenBlend):
            return _now()

    def _open_new(self, config: BlendConfig, snapshots: Sequence[int], view: CatalogView) -> Blend:
        require_no_validation_by_accident(config.sources)
        readers = view.open(config.sources, snapshots, _tags(config))
        require_agreement(config.sources, readers, pad=config.pad)
        blend = Blend(config, mixture_of(config, 0, self), readers)
        blend.require_steps()
        return blend

    def _prepare(self, blend: Blend, first: int = 0) -> None:
        """Index the sources from `first` on; files without readable pages fail here."""
        sources = blend.sources[first:]
        readers = {(source.reader.facts.key, source.config.columns): source for source in sources}
        for source in within_deadline(list(readers.values()), "sources prepared"):
            source.reader.prepare(source.config.columns)

    def _keep_facts(self, blend: Blend, tables: Mapping[str, Table], first: int = 0) -> None:
        """Cache the facts of freshly tagged tables, so that opening the blend loads no table."""
        kept = {
            (source.config.table, source.reader.snapshot_id, source.config.content): source
            for source in blend.sources[first:]
            if not source.config.live
        }
        for (table, snapshot, _), source in kept.items():
            self._opener.save_facts(tables[table], source.config, snapshot, source.reader.facts)

    def _keep_update(self, blend: Blend, parent: str, parent_pins: Pins) -> StoredBlend:
        """Store an update under the tags of its parent: ten thousand updates need no more tags than one.

        An update records its hold before it reads the parent again, and `retire` marks the parent before it
        looks for holds. So either the update sees the retirement, or `retire` sees the hold.
        """
        known = len(parent_pins.snapshots)
        tagged_by = list(parent_pins.tagged_by or ((parent, 0),))
        for tagger, _ in tagged_by:
            self._store.hold(blend.id, tagger)
        if len(blend.sources) > known:
            tagged_by.append((blend.id, known))
        pins = Pins(
            snapshots=_snapshots(blend),
            created_at=self._created_at(blend.id),
            depth=parent_pins.depth + 1,
            tagged_by=tuple(tagged_by),
        )
        block = history_block_of(blend.config, pins.depth, self)
        if block is not None:
            self._store.put_history_block(blend.id, block)
        with self._keeper.keeping(blend.id, _pinned(blend, known)) as tables:
            self._keep_facts(blend, tables, known)
            current_context().check()
            stored = self._put(blend, pins)
        if not self._store.get(parent)[1].retired:
            return stored
        # The update is on record, so this must finish even if its caller has left.
        with use_context(CallContext()), self._keeper.keeping(blend.id, _pinned(blend)) as tables:
            self._keep_facts(blend, tables)
            for number, source in enumerate(blend.sources):
                if isinstance(source.source_reader, LiveReader):
                    self._store.record_progress(tag_name(blend.id, number), source.source_reader.progress)
            return self._put(blend, pins.model_copy(update={"tagged_by": ()}))

    def _put(self, blend: Blend, pins: Pins) -> StoredBlend:
        self._store.put(blend.config, pins)
        self._configs.get(blend.id, lambda: blend.config)
        self._blends.get(blend.id, lambda: blend)
        return StoredBlend(blend.id, blend.config, pins)

    def config(self, blend: str) -> BlendConfig:
        """A blend's config; raises BlendNotFound."""
        return self._configs.get(blend, lambda: self._store.get(blend)[0])

    def history_block(self, blend: str) -> HistoryBlock | None:
        """The history block that ends with a blend, if there is one."""
        return self._store.history_block(blend)


def open_blends(settings: Settings, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Blends:
    """The blends of the lake that `settings` names, with `memory_bytes` for cached pages."""
    return Blends(Lake(settings), open_store(settings), memory_bytes)


def _pin(view: CatalogView, sources: Sequence[Source]) -> tuple[list[Source], list[int]]:
    """The sources with their contents, and their snapshots."""
    pinned = [view.pin(wellformed(source)) for source in within_deadline(sources, "sources pinned")]
    return [source for source, _ in pinned], [snapshot for _, snapshot in pinned]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _pinned(blend: Blend, first: int = 0) -> list[Pinned]:
    """Number, table and snapshot of the sources from `first` on."""
    return [
        (number, source.config.table, _snapshot(source.source_reader))
        for number, source in enumerate(blend.sources[first:], first)
    ]


def _snapshots(blend: Blend) -> tuple[int, ...]:
    return tuple(_snapshot(source.source_reader) for source in blend.sources)


def _snapshot(reader: Reader) -> int:
    return reader.pinned if isinstance(reader, LiveReader) else reader.snapshot_id


def _tags(config: BlendConfig) -> list[str]:
    """The tags of a blend that tags its own snapshots, one per source."""
    return [tag_name(config.id, number) for number in range(len(config.sources))]


def _taggers(stored: StoredBlend) -> Iterator[tuple[str, range]]:
    """The blends with tags that keep a blend's snapshots, each with the numbers of these sources."""
    taggers = stored.pins.tagged_by or ((stored.id, 0),)
    ends = [first for _, first in taggers[1:]] + [len(stored.config.sources)]
    for (tagger, first), end in zip(taggers, ends, strict=True):
        yield tagger, range(first, end)
