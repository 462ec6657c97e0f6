"""What blends say: the steps that serve a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyiceberg.expressions import In

from blender.opened.blend import Blend
from blender.records import RowPosition
from factory.explain.stages.document_trace import DocumentTrace, Serving
from factory.explain.stages.packing import PACKED
from factory.explain.stages.removals import Read
from factory.explain.stages.served_version import served_version
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake

SERVED = "served"


@dataclass(frozen=True)
class Served:
    """The steps of `blends` that serve a document; of each blend the `first` epochs."""

    blends: Sequence[Blend]
    first: int

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> None:
        """Add the steps to the traces, also to those of documents that a newer table removed."""
        assert read.dataset is not None
        for blend in self.blends:
            for part in names.packed_parts(read.names, read.dataset):
                _follow_blend(read.lake, blend, part, list(traces.values()), self.first)
        for trace in traces.values():
            if trace.servings:
                _conclude(trace)


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


def _follow_blend(lake: Lake, blend: Blend, part: str, traces: Sequence[DocumentTrace], first: int) -> None:
    table = names.packed(part)
    snapshots = {source.config.table: source.reader.snapshot_id for source in blend.sources}
    if str(table) not in snapshots or not traces:
        return
    ordinals = _ordinals(lake, part, snapshots[str(table)], traces)
    earlier = _with_earlier_text(lake, table, snapshots[str(table)], traces)
    positions = serving_positions(blend, str(table), set().union(*ordinals.values()), first)
    for trace in traces:
        servings = [
            Serving(blend.id, position.offset, position.epoch, ordinal, trace.doc_id in earlier)
            for ordinal in ordinals[trace.doc_id]
            for position in positions[ordinal]
        ]
        trace.servings += sorted(servings, key=lambda serving: serving.offset)


def _conclude(trace: DocumentTrace) -> None:
    """Say in the trace that blends serve the document: the outcome, unless a newer table removed it.

    If they serve the text that it had before, the outcome is that of the newer text.
    """
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


def _with_earlier_text(
    lake: Lake, table: TableName, snapshot_id: int, traces: Sequence[DocumentTrace]
) -> set[str]:
    """Return the ids of the documents whose text a packed table holds at a snapshot as it was before."""
    version = None
    if lake.published_at(table, snapshot_id).lineage.content != lake.published(table).lineage.content:
        version = served_version(lake, table, snapshot_id)
    if version is None:
        return set()
    raw = names.raw(names.dataset_of_packed(table))
    ids = pa.array([trace.doc_id for trace in traces], pa.string())
    rows = chain.from_iterable(
        batch.to_pylist() for batch in version.batches(raw, RAW, ("doc_id", "content_hash"), ids)
    )
    hashes = {row["doc_id"]: row["content_hash"] for row in rows}
    return {
        trace.doc_id for trace in traces if hashes.get(trace.doc_id, trace.content_hash) != trace.content_hash
    }


def _ordinals(lake: Lake, part: str, snapshot: int, traces: Sequence[DocumentTrace]) -> dict[str, list[int]]:
    """Return the ordinals of each document in the packed table at `snapshot`.

    One run publishes packed rows and placements, so the run's id finds the placements of an older snapshot.
    """
    sequences, placements = names.packed(part), names.placements(part)
    lineage = lake.published_at(sequences, snapshot).lineage
    if lineage.content == lake.published(sequences).lineage.content:
        return {
            trace.doc_id: [ordinal for ordinal, _, _ in trace.placements if trace.sequences == str(sequences)]
            for trace in traces
        }
    beside = lake.published_by(placements, lineage.run_id)
    ordinals: dict[str, list[int]] = {trace.doc_id: [] for trace in traces}
    if beside is not None:
        columns = ("doc_id", "doc_offset", "ordinal")
        rows = lake.read(placements, columns, In("doc_id", list(ordinals)), beside.snapshot_id).to_pylist()
        for row in sorted(rows, key=lambda row: row["doc_offset"]):
            ordinals[row["doc_id"]].append(row["ordinal"])
    return ordinals
