"""What blends say: the steps that serve a document."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import pyarrow as pa
from pyiceberg.expressions import In

from blender.opened.blend import Blend
from blender.records import RowPosition
from factory.errors import DamagedFile, TableNotFound
from factory.explain.stages.document_trace import DocumentTrace, Serving
from factory.explain.stages.packing import PACKED
from factory.explain.stages.removals import Read
from factory.explain.upstream import made_of
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake

SERVED = "served"

_LOG = logging.getLogger(__name__)

Head = tuple[TableName, int]  # a packed table and the snapshot at which blends serve it


@dataclass(frozen=True)
class Served:
    """The steps of `blends` that serve a document, of each blend the `first` epochs; for one trace.

    Blends that serve the same snapshot of a table share its version, which is looked up once.
    """

    lake: Lake
    blends: Sequence[Blend]
    first: int
    _versions: dict[Head, Read | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def heads(self) -> dict[Head, list[Blend]]:
        """The packed tables that blends serve, at each of their snapshots, with these blends."""
        heads: dict[Head, list[Blend]] = defaultdict(list)
        for blend in self.blends:
            for source in blend.sources:
                head = (TableName.parse(source.config.table), source.reader.snapshot_id)
                if blend not in heads[head]:
                    heads[head].append(blend)
        return heads

    def version(self, head: Head) -> Read | None:
        """Return the tables behind a packed table at a snapshot; None if they cannot be read any more."""
        if head not in self._versions:
            self._versions[head] = _served_version(self.lake, *head)
        return self._versions[head]

    def versions(self, tables: Collection[TableName] | None = None) -> Iterator[Read]:
        """Yield the tables behind each packed table (among `tables`) that blends serve, at each snapshot."""
        heads = (head for head in self.heads if tables is None or head[0] in tables)
        yield from filter(None, map(self.version, heads))

    def follow(self, read: Read, traces: Sequence[DocumentTrace]) -> None:
        """Add the steps to the traces, also if a newer table removed the document.

        If `read` pins the tables behind a packed snapshot, only the blends that serve this snapshot count.
        """
        assert read.dataset is not None
        tables = [names.packed(part) for part in names.packed_parts(read.names, read.dataset)]
        for head, blends in self.heads.items():
            table, snapshot = head
            if table in tables and (read.pinned is None or read.pinned.get(table) == snapshot):
                ordinals = _ordinals(read, table, snapshot, traces)
                if any(ordinals.values()):
                    earlier = set() if read.pinned is not None else self._with_earlier_text(head, traces)
                    for blend in blends:
                        _add_servings(blend, str(table), ordinals, earlier, traces, self.first)

    def _with_earlier_text(self, head: Head, traces: Sequence[DocumentTrace]) -> set[str]:
        """Return the ids of the documents with an earlier text in a packed table."""
        version = self.version(head)
        raw = names.raw(names.dataset_of_packed(head[0]))
        if version is None or version.snapshot(raw) == self.lake.published(raw).snapshot_id:
            return set()
        ids = pa.array([trace.doc_id for trace in traces], pa.string())
        try:
            batches = list(version.batches(raw, RAW, ("doc_id", "content_hash"), ids))
        except DamagedFile as error:
            _LOG.warning("Nobody can tell whether %s holds earlier texts: %s", head[0], error)
            return set()
        rows = chain.from_iterable(batch.to_pylist() for batch in batches)
        hashes = {row["doc_id"]: row["content_hash"] for row in rows}
        return {
            trace.doc_id
            for trace in traces
            if hashes.get(trace.doc_id, trace.content_hash) != trace.content_hash
        }


def serving_positions(
    blend: Blend, table: str, ordinals: Iterable[int], first: int
) -> dict[int, list[RowPosition]]:
    """Return the first `first` positions at which each source of `blend` on `table` serves each ordinal."""
    sources = [source.config.name for source in blend.sources if source.config.table == table]
    return {
        ordinal: [
            position for name in sources for position in blend.order.locate(name, ordinal, epochs=first)
        ]
        for ordinal in ordinals
    }


def conclude(trace: DocumentTrace) -> None:
    """Say in a trace that blends serve the document: the outcome, unless a newer table removed it.

    If they serve an earlier text of the document, the newer text decides the outcome.
    """
    if not trace.servings:
        return
    servings = [serving for serving in trace.servings if not serving.of_earlier_text]
    subject = "" if servings else "an earlier text of it is "
    servings = servings or trace.servings
    blends = {serving.blend for serving in servings}
    first = min(servings, key=lambda serving: serving.offset)
    sentence = f"{subject}served by {len(blends)} blends"
    if len(blends) == 1:
        sentence = f"{subject}served first at step {first.offset:,} of blend {first.blend}"
    if trace.outcome == PACKED and not subject:
        trace.outcome, trace.reason = SERVED, sentence
    else:
        trace.reason = f"{trace.reason or 'under way'}; {sentence}, from earlier packed sequences"


def _add_servings(
    blend: Blend,
    table: str,
    ordinals: Mapping[str, Sequence[int]],
    earlier: set[str],
    traces: Sequence[DocumentTrace],
    first: int,
) -> None:
    positions = serving_positions(blend, table, set().union(*ordinals.values()), first)
    for trace in traces:
        servings = [
            Serving(blend.id, position.offset, position.epoch, ordinal, trace.doc_id in earlier)
            for ordinal in ordinals[trace.doc_id]
            for position in positions[ordinal]
        ]
        trace.servings += sorted(servings, key=lambda serving: serving.offset)


def _ordinals(
    read: Read, table: TableName, snapshot: int, traces: Sequence[DocumentTrace]
) -> dict[str, list[int]]:
    """Return the ordinals of each document in a packed table at a snapshot.

    One run publishes packed rows and placements, so the run's id finds the placements of an older snapshot.
    """
    lake, lineage = read.lake, read.lake.published_at(table, snapshot).lineage
    if read.pinned is not None or lineage.content == lake.published(table).lineage.content:
        return {
            trace.doc_id: [ordinal for ordinal, _, _ in trace.placements if trace.sequences == str(table)]
            for trace in traces
        }
    placements = names.placements(table.name)
    beside = lake.published_by(placements, lineage.run_id)
    ordinals: dict[str, list[int]] = {trace.doc_id: [] for trace in traces}
    if beside is not None:
        columns = ("doc_id", "doc_offset", "ordinal")
        rows = lake.read(placements, columns, In("doc_id", list(ordinals)), beside.snapshot_id).to_pylist()
        for row in sorted(rows, key=lambda row: row["doc_offset"]):
            ordinals[row["doc_id"]].append(row["ordinal"])
    return ordinals


def _served_version(lake: Lake, table: TableName, snapshot_id: int) -> Read | None:
    """Return the tables behind a packed table at the snapshots that its rows were made from.

    A blend keeps its rows when their source changes, so the newest tables may hold another text of a
    document, or none. Return None for a table that was not made from a raw table, and if one of these
    snapshots has expired or is damaged.
    """
    if table.namespace != "packed":
        return None
    dataset = names.dataset_of_packed(table)
    snapshots = dict(made_of(lake, table, snapshot_id)) | {table: snapshot_id}
    if names.raw(dataset) not in snapshots:
        return None
    placements = names.placements(table.name)
    try:
        beside = lake.published_by(placements, lake.published_at(table, snapshot_id).lineage.run_id)
    except (TableNotFound, DamagedFile):
        return None
    if beside is None:
        return None
    snapshots[placements] = beside.snapshot_id
    return Read(lake, snapshots.keys(), snapshots, dataset)
