"""Trace documents from their source to the steps that serve them, or to the reason for their removal.

The published tables and the blends are the only record. Documents are traced together, because each table is
scanned once for all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyiceberg.expressions import In

from blender.opened.blend import Blend
from blender.records import RowPosition
from factory.errors import NotFound
from factory.explain.find import search_raw_tables
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.repository import WITH_ITS_REPOSITORY, repositories_of, repository_id, why_removed
from factory.lake.tables import Lake

Outcome = Literal["bad_record", "filtered", "duplicate", "repository", "packed", "served", "under_way"]
_ABOUT = ("doc_id", "source", "key", "n_bytes", "repository", "path", "revision", "license")


@dataclass(frozen=True)
class Rejection:
    """A rule that a document fails: the measured value and the threshold it breaks."""

    rule: str
    value: float
    threshold: float


@dataclass(frozen=True)
class Serving:
    """A step of a blend that serves a piece of a document."""

    blend: str
    offset: int
    epoch: int
    ordinal: int


@dataclass(frozen=True)
class StoredStep:
    """A durable batch that holds a step of a blend, `offset`."""

    uri: str
    namespace: str
    """The id of its namespace."""
    step: int
    offset: int


@dataclass
class DocumentTrace:
    """The path of one document through the pipeline.

    `tables` are the tables that hold it, with their snapshots, in pipeline order. `reason` is one sentence on
    its outcome; the outcome `repository` means that its whole repository was removed. `variants` are its
    traces through the variants of its dataset, by name.
    """

    doc_id: str
    dataset: str
    source: str
    key: str
    about: dict[str, Any]
    outcome: Outcome = "under_way"
    reason: str = ""
    tables: dict[str, int] = field(default_factory=dict)
    rejections: list[Rejection] = field(default_factory=list)
    duplicate_of: str | None = None
    similarity: float | None = None
    component: str | None = None
    position: int | None = None
    placements: list[tuple[int, int, int]] = field(default_factory=list)  # (ordinal, doc_offset, length)
    servings: list[Serving] = field(default_factory=list)
    stored: list[StoredStep] = field(default_factory=list)
    variants: dict[str, DocumentTrace] = field(default_factory=dict)

    def in_variant(self, name: str) -> DocumentTrace:
        """Start a trace with the same origin in `variants`."""
        self.variants[name] = DocumentTrace(
            self.doc_id, name, self.source, self.key, self.about, tables=dict(self.tables)
        )
        return self.variants[name]


def trace_documents(
    lake: Lake, ids: Sequence[str], blends: Sequence[Blend] = (), first: int = 3
) -> list[DocumentTrace]:
    """Trace each id, in the given order; `first` is the number of steps to name per blend.

    Raises NotFound for an id that no raw table holds.
    """
    traces = trace_known(lake, ids, blends, first)
    missing = [of for of in ids if of not in traces]
    if missing:
        raise NotFound(
            f"No raw table holds document `{missing[0]}`. Give a doc_id as the tables show it: "
            "factory sample raw.<dataset>."
        )
    return [traces[of] for of in ids]


def trace_known(
    lake: Lake, ids: Sequence[str], blends: Sequence[Blend] = (), first: int = 3
) -> dict[str, DocumentTrace]:
    """Trace the ids that a raw table holds; omit the others."""
    tables = set(lake.names())
    traces: dict[str, DocumentTrace] = {}
    search_raw_tables(
        tables,
        lambda table: traces.update(_read_raw(lake, table, ids)),
        lambda: all(of in traces for of in ids),
    )
    by_dataset: dict[str, list[DocumentTrace]] = defaultdict(list)
    for trace in traces.values():
        if trace.outcome != "bad_record":
            by_dataset[trace.dataset].append(trace)
    for dataset, members in by_dataset.items():
        ways = {name: [it.in_variant(name) for it in members] for name in names.variants(tables, dataset)}
        for name, traced in {dataset: members, **ways}.items():
            _follow_filters(lake, tables, name, traced)
            _follow_dedup(lake, tables, name, [it for it in traced if it.outcome == "under_way"])
            _follow_packing(lake, tables, name, [it for it in traced if it.outcome == "under_way"])
            for blend in blends:
                _follow_blend(lake, blend, name, traced, first)
    return traces


def _read_raw(lake: Lake, table: TableName, ids: Sequence[str]) -> dict[str, DocumentTrace]:
    bad = table.name.endswith("_rejected")
    columns = ("doc_id", "source", "key", "n_bytes", "location", "reason", "detail") if bad else _ABOUT
    dataset = table.name.removesuffix("_rejected")
    traces = {}
    for row in _rows(lake, table, columns, ids):
        about = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("doc_id", "source", "key")
        }
        trace = DocumentTrace(row["doc_id"], dataset, row["source"], row["key"], about)
        if bad:
            trace.outcome = "bad_record"
            trace.reason = f"bad record ({row['reason']}) at {row['location']}: {row['detail']}"
        _note(lake, table, [trace])
        traces[trace.doc_id] = trace
    return traces


def _follow_filters(lake: Lake, tables: set[TableName], dataset: str, members: list[DocumentTrace]) -> None:
    table = names.verdicts(tables, dataset)
    if table not in tables or not members:
        return
    verdicts = {
        row["doc_id"]: row
        for row in _rows(lake, table, ("doc_id", "kept", "rejections"), [it.doc_id for it in members])
    }
    for trace in members:
        verdict = verdicts.get(trace.doc_id)
        if verdict is None:
            continue
        _note(lake, table, [trace])
        trace.rejections = [Rejection(**rejection) for rejection in verdict["rejections"] or []]
        if not verdict["kept"]:
            trace.outcome = "filtered"
            said = ", ".join(f"{r.rule} is {r.value:g} (limit {r.threshold:g})" for r in trace.rejections)
            trace.reason = f"rejected by {len(trace.rejections)} rule(s): {said}"


def _follow_dedup(lake: Lake, tables: set[TableName], dataset: str, members: list[DocumentTrace]) -> None:
    columns = ("doc_id", "dataset", "kept", "reason", "duplicate_of", "similarity", "component")
    for table in sorted(tables):
        if table.namespace != "dedup" or not table.name.endswith("_decisions") or not members:
            continue
        by_id = {trace.doc_id: trace for trace in members}
        gone: list[tuple[DocumentTrace, str]] = []
        for row in _rows(lake, table, columns, list(by_id)):
            if row["dataset"] != dataset:
                continue
            trace = by_id[row["doc_id"]]
            _note(lake, table, [trace])
            trace.duplicate_of, trace.similarity, trace.component = (
                row["duplicate_of"],
                row["similarity"],
                row["component"],
            )
            if row["kept"]:
                continue
            if row["reason"] in WITH_ITS_REPOSITORY:
                trace.outcome = "repository"
                gone.append((trace, _like(row)))
            else:
                trace.outcome, trace.reason = "duplicate", _duplicate(row)
        if gone:
            why = why_removed(lake, table)
            _note(lake, repositories_of(table), [trace for trace, _ in gone])
            for trace, like in gone:
                about = trace.about.get("repository"), trace.about.get("revision")
                trace.reason = f"{why(repository_id(dataset, *about))}; {like}"


def _duplicate(row: Mapping[str, Any]) -> str:
    """Return why a single document was removed."""
    partner, similarity = row["duplicate_of"], row["similarity"]
    if similarity is None:
        return (
            f"removed for {partner}, which is kept: joined to it through others, similar to no kept document"
        )
    kind = "an exact copy" if row["reason"] == "exact_copy" and similarity == 1 else "a near duplicate"
    return f"{kind} of {partner}, which is kept (similarity {similarity:.4f})"


def _like(row: Mapping[str, Any]) -> str:
    """Return which kept document resembles a document that was removed with its repository."""
    if row["duplicate_of"] is None:
        return "no kept document resembles it"
    return f"the kept document {row['duplicate_of']} resembles it (similarity {row['similarity']:.4f})"


def _follow_packing(lake: Lake, tables: set[TableName], dataset: str, members: list[DocumentTrace]) -> None:
    if not members:
        return
    by_id = {trace.doc_id: trace for trace in members}
    ordered, placed = names.sorted_table(dataset), names.placements(dataset)
    if ordered in tables:
        for row in _rows(lake, ordered, ("doc_id", "position"), list(by_id)):
            by_id[row["doc_id"]].position = row["position"]
            _note(lake, ordered, [by_id[row["doc_id"]]])
    if placed in tables:
        for row in _rows(lake, placed, ("doc_id", "ordinal", "doc_offset", "length"), list(by_id)):
            trace = by_id[row["doc_id"]]
            trace.placements.append((row["ordinal"], row["doc_offset"], row["length"]))
            trace.outcome = "packed"
        for trace in members:
            trace.placements.sort(key=lambda placement: placement[1])
            if trace.placements:
                _note(lake, placed, [trace])
                trace.reason = f"packed into {len(trace.placements)} sequence(s)"


def _follow_blend(lake: Lake, blend: Blend, dataset: str, members: list[DocumentTrace], first: int) -> None:
    table = names.packed(dataset)
    snapshots = {source.config.table: source.reader.snapshot_id for source in blend.sources}
    if str(table) not in snapshots or not members:
        return
    ordinals = _ordinals(lake, dataset, snapshots[str(table)], members)
    positions = serving_positions(blend, str(table), set().union(*ordinals.values()), first)
    for trace in members:
        found = [
            Serving(blend.id, position.offset, position.epoch, ordinal)
            for ordinal in ordinals[trace.doc_id]
            for position in positions[ordinal]
        ]
        trace.servings += sorted(found, key=lambda serving: serving.offset)
        if found and trace.outcome in ("packed", "served"):
            trace.outcome = "served"
            trace.reason = f"served first at step {min(serving.offset for serving in trace.servings)}"
        elif found:
            offset = min(serving.offset for serving in found)
            trace.reason = (
                f"{trace.reason or 'under way'}; blend {blend.id}, of an earlier version of {table}, "
                f"serves it first at step {offset}"
            )


def serving_positions(
    blend: Blend, table: str, ordinals: Iterable[int], first: int
) -> dict[int, list[RowPosition]]:
    """Return the first `first` positions at which each source of `blend` on `table` serves each ordinal."""
    sources = [source.config.name for source in blend.sources if source.config.table == table]
    return {
        ordinal: [at for name in sources for at in blend.order.locate(name, ordinal, epochs=first)]
        for ordinal in ordinals
    }


def _ordinals(lake: Lake, dataset: str, snapshot: int, members: list[DocumentTrace]) -> dict[str, list[int]]:
    """Return the ordinals of each document in the packed table at `snapshot`.

    One run publishes packed rows and placements, so the run's id finds the placements of an older snapshot.
    """
    packed, placed = names.packed(dataset), names.placements(dataset)
    pinned = lake.published_at(packed, snapshot).lineage
    if pinned.content == lake.published(packed).lineage.content:
        return {trace.doc_id: [ordinal for ordinal, _, _ in trace.placements] for trace in members}
    beside = lake.published_by(placed, pinned.run_id)
    found: dict[str, list[int]] = {trace.doc_id: [] for trace in members}
    if beside is not None:
        where = In("doc_id", list(found))
        rows = lake.read(placed, ("doc_id", "doc_offset", "ordinal"), where, beside.snapshot_id).to_pylist()
        for row in sorted(rows, key=lambda row: row["doc_offset"]):
            found[row["doc_id"]].append(row["ordinal"])
    return found


def _rows(lake: Lake, table: TableName, columns: Sequence[str], ids: Sequence[str]) -> list[dict[str, Any]]:
    if lake.table(table).current_snapshot() is None:
        return []
    rows: list[dict[str, Any]] = lake.read(table, columns, In("doc_id", list(ids))).to_pylist()
    return rows


def _note(lake: Lake, table: TableName, traces: Iterable[DocumentTrace]) -> None:
    snapshot = lake.published(table).snapshot_id
    for trace in traces:
        trace.tables[str(table)] = snapshot
