"""The blends of a lake, without a port: make, change, look up, retire, open for reading.

Making a blend resolves each source's reference to a snapshot, reads its content fingerprint, opens it as a
reader would (so what is wrong comes out now), tags the snapshots so that maintenance keeps them, and only
then stores the blend. A step that fails, or whose caller has left or is out of time, leaves no tag; a killed
process leaves tags at most, which making the blend again takes over. An update reads what its parent has
open, under the same tags: it costs two small objects and no table.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.table import Table

from blender.call_context import CallContext, current_context, use_context, within_deadline
from blender.catalog.cache import SharedCache
from blender.catalog.pinning import Keeper, Pinned
from blender.catalog.source_opener import CatalogView, Reader, SourceOpener
from blender.catalog.store import BlendStore, Pins, open_store
from blender.catalog.tags import tag_name
from blender.errors import BlendNotFound, BrokenBlend, InvalidBlend
from blender.opened.agreement import require_agreement
from blender.opened.blend import Blend
from blender.records import Schedule, Source
from blender.rows.lake_pages import LakePages
from blender.rows.live import LiveReader
from blender.spec.config import BlendConfig, blend_config, updated
from blender.spec.history import HistoryBlock, history_block_of, mixture_of
from blender.spec.source import wellformed
from factory.lake.tables import Lake
from factory.settings import Settings

_LOG = logging.getLogger(__name__)

DEFAULT_MEMORY_BYTES = 512 << 20  # of pages and blocks read ahead

_OPEN_BLENDS = 256
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
        self._store = store
        self._keeper = Keeper(lake, store)
        self._opener = SourceOpener(lake, store, LakePages(lake.settings, memory_bytes))
        self._configs: SharedCache[BlendConfig] = SharedCache(_KNOWN_CONFIGS)
        self._blends: SharedCache[Blend] = SharedCache(_OPEN_BLENDS)

    def create(
        self,
        sources: Sequence[Source],
        seed: int = 0,
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> StoredBlend:
        """A blend of `sources`; the same content, weights or schedule, and seed again give the same id.

        With `pad` rows of unlike lengths may stand together. Raises InvalidBlend, ConfigurationError for a
        malformed table name, and TableNotFound.
        """
        view = self._opener.view()
        pinned = [view.pin(wellformed(source)) for source in within_deadline(sources, "sources pinned")]
        config = blend_config([source for source, _ in pinned], seed, schedule, pad=pad)
        return self._keep(config, [pin for _, pin in pinned], view)

    def considered(
        self,
        sources: Sequence[Source],
        seed: int = 0,
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> Blend:
        """The blend that `create` would make, open but not put on record; raises what it raises."""
        view = self._opener.view()
        pinned = [view.pin(wellformed(source)) for source in within_deadline(sources, "sources pinned")]
        config = blend_config([source for source, _ in pinned], seed, schedule, pad=pad)
        readers = view.open(config.sources, [pin for _, pin in pinned], _tags(config))
        require_agreement(config.sources, readers, pad=config.pad)
        return Blend(config, mixture_of(config, 0, self), readers)

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
        """The blend equal to `parent` before step `offset`, from there on with `weights` by source name.

        A `schedule` takes the place of all weights. Raises BlendNotFound, and what `create` raises.
        """
        config, pins = self._store.get(parent)
        opened = self.open(parent)
        view = self._opener.view()
        added = [view.pin(wellformed(source)) for source in within_deadline(add, "sources pinned")]
        child = updated(config, offset, weights, [source for source, _ in added], schedule, pad=pad)
        known = len(opened.sources)
        readers = [source.kept for source in opened.sources]
        if added:  # what its parent has was agreed upon when that was made, perhaps by other rules
            readers += view.open(child.sources[known:], [pin for _, pin in added], _tags(child)[known:])
            require_agreement(child.sources, readers, pad=child.pad)
        blend = Blend(child, opened.order.mixture.extended([child.piece], [child.offset]), readers)
        self._prepare(blend, known)
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
            if not self._keeper.is_needed(tagger):
                of_tables: dict[str, list[str]] = {}
                for number in numbers:
                    table = stored.config.sources[number].table
                    of_tables.setdefault(table, []).append(tag_name(tagger, number))
                self._keeper.let_go(of_tables)
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
            # An id must not serve other rows because it was made twice: it goes on where it began.
            pins = self._store.get(config.id)[1].snapshots
            followed = zip(config.sources, snapshots, pins, strict=True)
            snapshots = [old if source.live else new for source, new, old in followed]
        readers = view.open(config.sources, snapshots, _tags(config))
        require_agreement(config.sources, readers, pad=config.pad)
        opened = Blend(config, mixture_of(config, 0, self), readers)
        self._prepare(opened)
        with self._keeper.keeping(config.id, _pinned(opened)) as tables:
            self._keep_facts(opened, tables)
            self._opener.save_bundle(opened.sources, _snapshots(opened))
            current_context().check()
            return self._put(opened, Pins(snapshots=_snapshots(opened), created_at=_now()))

    def _prepare(self, blend: Blend, first: int = 0) -> None:
        """Read what readers of the sources from `first` on will need: what has no pages is told at once."""
        sources = blend.sources[first:]
        readers = {(source.reader.facts.key, source.config.columns): source for source in sources}
        for source in within_deadline(list(readers.values()), "sources prepared"):
            source.reader.prepare(source.config.columns)

    def _keep_facts(self, blend: Blend, tables: Mapping[str, Table], first: int = 0) -> None:
        """Keep what the metadata of freshly tagged tables says, so that opening the blend loads none."""
        kept = {
            (source.config.table, source.reader.snapshot_id, source.config.content): source
            for source in blend.sources[first:]
            if not source.config.live
        }
        for (table, snapshot, _), source in kept.items():
            self._opener.keep(tables[table], source.config, snapshot, source.reader.facts)

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
            tagged_by.append((blend.id, known))
        pins = Pins(
            snapshots=_snapshots(blend),
            created_at=_now(),
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
        # It is on record, so this is carried through whoever waits for it.
        with use_context(CallContext()), self._keeper.keeping(blend.id, _pinned(blend)) as tables:
            self._keep_facts(blend, tables)
            for number, source in enumerate(blend.sources):
                if isinstance(source.kept, LiveReader):
                    self._store.record_progress(tag_name(blend.id, number), source.kept.progress)
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
        """What a blend and its nearest ancestors plan, where that is on record."""
        return self._store.history_block(blend)


def open_blends(settings: Settings, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> Blends:
    """The blends of the lake that `settings` names, reading under `memory_bytes` of pages."""
    return Blends(Lake(settings), open_store(settings), memory_bytes)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _pinned(blend: Blend, first: int = 0) -> list[Pinned]:
    """What the sources from `first` on are pinned to."""
    return [
        (number, source.config.table, _snapshot(source.kept))
        for number, source in enumerate(blend.sources[first:], first)
    ]


def _snapshots(blend: Blend) -> tuple[int, ...]:
    return tuple(_snapshot(source.kept) for source in blend.sources)


def _snapshot(reader: Reader) -> int:
    return reader.pinned if isinstance(reader, LiveReader) else reader.snapshot_id


def _tags(config: BlendConfig) -> list[str]:
    """What the sources of a blend that keeps its snapshots itself are known by."""
    return [tag_name(config.id, number) for number in range(len(config.sources))]


def _taggers(stored: StoredBlend) -> Iterator[tuple[str, range]]:
    """The blends whose tags keep the snapshots of a blend, and the numbers of the sources each keeps."""
    taggers = stored.pins.tagged_by or ((stored.id, 0),)
    ends = [first for _, first in taggers[1:]] + [len(stored.config.sources)]
    for (tagger, first), end in zip(taggers, ends, strict=True):
        yield tagger, range(first, end)
