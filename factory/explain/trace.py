"""Trace documents from their source to the steps that serve them, or to the reason for their removal.

The published tables and the blends are the only record. Documents are traced together, because each table is
scanned once for all of them.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from blender.opened.blend import Blend
from factory.errors import DamagedFile, NotFound, TableNotFound
from factory.explain.evidence import Evidence
from factory.explain.find import search_raw_tables
from factory.explain.stages.document_trace import UNDER_WAY, DocumentTrace, Rejection, Serving, StoredStep
from factory.explain.stages.ingest import BAD_RECORD, descendants, origins
from factory.explain.stages.registry import STAGES
from factory.explain.stages.removals import Read
from factory.explain.stages.serving import Served, conclude
from factory.explain.stages.stage import removed
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake

__all__ = ["DocumentTrace", "Rejection", "Serving", "StoredStep", "trace_documents", "trace_known"]

_LOG = logging.getLogger(__name__)


def trace_documents(
    lake: Lake, ids: Sequence[str], blends: Sequence[Blend] = (), first: int = 3
) -> list[DocumentTrace]:
    """Trace each id, in the given order; `first` is the number of steps to name per blend.

    An id has a trace for each raw table that holds it: a dataset with a new name leaves the table of its old
    one. Raises NotFound for an id that no raw table holds, and no rows that blends serve come from.
    """
    return trace_ids(lake, ids, Served(lake, blends, first))


def trace_ids(lake: Lake, ids: Sequence[str], blend_steps: Served) -> list[DocumentTrace]:
    """As `trace_documents`, with `blend_steps` to share between calls."""
    traces = trace_known(lake, ids, blend_steps)
    unknown = [doc_id for doc_id in ids if doc_id not in traces]
    for doc_id, trace in trace_served(lake, unknown, blend_steps).items():
        trace.reason = f"{trace.reason or 'under way'}; no raw table holds it any more"
        traces[doc_id] = [trace]
    missing = [doc_id for doc_id in ids if doc_id not in traces]
    if missing:
        raise NotFound(
            f"No raw table holds document `{missing[0]}`. Give a doc_id as the tables show it: "
            "factory sample raw.<dataset>."
        )
    return [trace for doc_id in ids for trace in traces[doc_id]]


def trace_known(lake: Lake, ids: Sequence[str], blend_steps: Served) -> dict[str, list[DocumentTrace]]:
    """Trace the ids that a raw table holds, once for each such table; omit the others."""
    tables = frozenset(lake.names())
    traces: dict[str, list[DocumentTrace]] = defaultdict(list)
    by_dataset: dict[str, list[DocumentTrace]] = defaultdict(list)

    def begin(table: TableName) -> None:
        for trace in origins(lake, table, ids):
            traces[trace.doc_id].append(trace)
            if trace.outcome != BAD_RECORD:
                by_dataset[trace.dataset].append(trace)

    search_raw_tables(tables, begin, lambda: all(doc_id in traces for doc_id in ids))
    for dataset, members in by_dataset.items():
        variants = {
            name: [trace.in_variant(name) for trace in members] for name in names.variants(tables, dataset)
        }
        for name, in_dataset in {dataset: members, **variants}.items():
            _follow(Read(lake, tables, dataset=name), in_dataset, blend_steps)
            for trace in in_dataset:
                conclude(trace)
            _explain(lake, names.verdicts(tables, name), in_dataset)
    for table, parent in _made_from(lake, tables):
        _add_descendants(lake, table, by_dataset.get(parent, ()), blend_steps)
    _name_duplicates(lake, tables, by_dataset)
    return dict(traces)


def trace_served(
    lake: Lake, ids: Sequence[str], blend_steps: Served, tables: Collection[TableName] | None = None
) -> dict[str, DocumentTrace]:
    """Trace ids through the tables behind the rows that blends serve, even if newer tables differ.

    Only rows of the packed `tables` count, if they are given. A document that rows of several snapshots hold
    has the trace of the newest, with the steps of all. Omits ids without a row, and rows of expired or
    damaged tables.
    """
    traces: dict[str, DocumentTrace] = {}
    versions = blend_steps.versions(tables) if ids else ()
    for read in versions:
        try:
            members = _served_members(lake, ids, read, blend_steps)
        except DamagedFile as error:
            _LOG.warning("Rows that blends serve are left out. %s", error)
            continue
        for trace in members:
            older = traces.get(trace.doc_id)
            traces[trace.doc_id] = trace if older is None else _newer(older, trace)
    for trace in traces.values():
        conclude(trace)
    return traces


def _served_members(lake: Lake, ids: Sequence[str], read: Read, blend_steps: Served) -> list[DocumentTrace]:
    """Trace those `ids` that the raw table of a version holds."""
    dataset = str(read.dataset)
    raw = names.raw(dataset)
    members = [replace(trace, dataset=dataset) for trace in origins(lake, raw, ids, read.snapshot(raw))]
    _follow(read, members, blend_steps)
    _explain(lake, names.verdicts(read.names, dataset), members)
    return members


def _newer(older: DocumentTrace, trace: DocumentTrace) -> DocumentTrace:
    """Return a trace with the steps of an older one, or the older one if no rows hold the document now."""
    if not trace.servings:
        return older
    earlier = older.content_hash != trace.content_hash
    trace.servings = [replace(step, of_earlier_text=earlier) for step in older.servings] + trace.servings
    return trace


def _name_duplicates(
    lake: Lake, tables: frozenset[TableName], by_dataset: Mapping[str, Sequence[DocumentTrace]]
) -> None:
    """Add to the traces of duplicates the sources and keys of the documents that they name."""
    duplicates = [
        trace
        for members in by_dataset.values()
        for member in members
        for trace in (member, *member.variants.values())
        if trace.duplicate_of
    ]
    partners = {str(name) for trace in duplicates for name in (trace.duplicate_of, trace.kept_document)}
    names_by_id: dict[str | None, str] = {}

    for table in sorted(name for name in tables if partners and name.namespace == "raw"):
        with suppress(DamagedFile):  # which the search for the traced documents has named
            names_by_id |= {trace.doc_id: trace.name for trace in origins(lake, table, partners)}
    for trace in duplicates:
        trace.duplicate_name = names_by_id.get(trace.duplicate_of)
        trace.kept_name = names_by_id.get(trace.kept_document)


def _made_from(lake: Lake, tables: frozenset[TableName]) -> Iterator[tuple[TableName, str]]:
    """Yield the raw tables that are made from others, each with the dataset of the other."""
    for table in sorted(tables):
        if table.namespace == "raw" and not names.holds_bad_records(table):
            try:
                upstream = lake.published(table).lineage.upstream
            except (TableNotFound, DamagedFile):  # no run has published it yet, or nobody can tell
                continue
            parents = map(TableName.parse, upstream)
            yield from ((table, parent.name) for parent in parents if parent.namespace == "raw")


def _add_descendants(
    lake: Lake, table: TableName, traces: Sequence[DocumentTrace], blend_steps: Served
) -> None:
    """Add the traces of the documents that a raw table makes from documents of another."""
    ids = descendants(lake, table, [trace.doc_id for trace in traces]) if traces else {}
    if not ids:
        return
    children = trace_known(lake, [child for of_one in ids.values() for child in of_one], blend_steps)
    for trace in traces:
        for child in ids.get(trace.doc_id, ()):
            trace.descendants += [way for way in children[child] if way.dataset == table.name]


def _explain(lake: Lake, verdicts: TableName, traces: Sequence[DocumentTrace]) -> None:
    """Add the evidence in each text to the rejections by `verdicts`."""
    by_snapshot: dict[int, dict[str, DocumentTrace]] = defaultdict(dict)
    for trace in traces:
        if trace.rejections and str(verdicts) in trace.tables:
            by_snapshot[trace.tables[str(verdicts)]][trace.doc_id] = trace
    for snapshot_id, by_id in by_snapshot.items():
        rejections = {doc_id: trace.rejections for doc_id, trace in by_id.items()}
        phrases = Evidence(lake, verdicts, snapshot_id).phrases(rejections)
        for doc_id, trace in by_id.items():
            trace.rejections = [
                replace(rejection, evidence=phrases.get((doc_id, rejection.rule)))
                for rejection in trace.rejections
            ]


def _follow(read: Read, traces: Sequence[DocumentTrace], blend_steps: Served) -> None:
    """Follow the documents of one dataset from stage to stage, as far as each of them comes."""
    for view in STAGES:
        under_way = {trace.doc_id: trace for trace in traces if trace.outcome == UNDER_WAY}
        if under_way:
            suspects = view.follow(read, under_way)
            for doc_id, removals in removed(view, read, suspects).items():
                under_way[doc_id].leave(removals, view.explain(removals))
    blend_steps.follow(read, traces)
