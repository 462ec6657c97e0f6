"""The view of ingest: the origin of a document, or the reason why a record became none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import In

from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Removal
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope, counts_figure
from factory.lake import names
from factory.lake.identity import DERIVED_FROM_KEY
from factory.lake.names import INGEST, TableName
from factory.lake.rejected import place_of_record
from factory.lake.tables import Lake, Published
from spark_udfs.ingest.rows import DERIVED_FROM

BAD_RECORD = "bad_record"
_ABOUT = (
    *("doc_id", "source", "key", "content_hash", "n_bytes"),
    *("repository", "path", "revision", "license", "metadata"),
)
_OF_BAD_RECORD = ("doc_id", "source", "key", "n_bytes", "file", "location", "reason", "detail")
# Where it comes from.
_SHOWN_FACTS = (
    DERIVED_FROM,
    DERIVED_FROM_KEY,
    "worker",
    "url",
    "warc_file",
    "warc_offset",
)  # where it comes from


class IngestView(StageView):
    """The raw documents and the rejected records."""

    stage = INGEST
    sections = (Section("bad_records", "Bad records"),)

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        return (names.raw(dataset),)

    def count(self, scope: SummaryScope, published: Published) -> tuple[int | None, int]:
        n_rejected = sum(scope.rejected(published.table.name).values())
        return published.rows + n_rejected, published.rows

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for dataset in scope.datasets:
            if dataset == names.base(dataset):
                yield counts_figure("bad_records", dataset, scope.rejected(dataset))


VIEW = IngestView()


def descendants(lake: Lake, table: TableName, ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the documents of a raw table that are made from each of `ids`.

    Reads the facts of the whole table, because no index leads from a document to those made from it.
    """
    rows = lake.read(table, ["doc_id", "metadata"])
    parents = pc.map_lookup(rows["metadata"], DERIVED_FROM, "first")
    of_ids = pc.is_in(parents, pa.array(ids, parents.type))
    ids_of_parent: dict[str, list[str]] = {}
    pairs = zip(parents.filter(of_ids).to_pylist(), rows["doc_id"].filter(of_ids).to_pylist(), strict=True)
    for parent, doc_id in pairs:
        ids_of_parent.setdefault(parent, []).append(doc_id)
    return ids_of_parent


def origins(
    lake: Lake, table: TableName, ids: Collection[str], snapshot_id: int | None = None
) -> Iterator[DocumentTrace]:
    """Yield the beginning of the trace of each id that a raw table holds; of a bad record, also its end.

    The table is read at a snapshot, by default the newest.
    """
    if lake.table(table).current_snapshot() is None:
        return
    snapshot = lake.published(table).snapshot_id if snapshot_id is None else snapshot_id
    is_bad = names.holds_bad_records(table)
    columns = ("*",) if is_bad else _ABOUT  # an older snapshot may lack `file`
    for row in lake.read(table, columns, In("doc_id", list(ids)), snapshot).to_pylist():
        if is_bad:
            row = {name: row[name] for name in _OF_BAD_RECORD if name in row}
        content_hash = row.pop("content_hash", "")
        facts = dict(row.pop("metadata", None) or ())
        row |= {name: facts[name] for name in _SHOWN_FACTS if name in facts}
        about = {
            name: value
            for name, value in row.items()
            if value is not None and name not in ("doc_id", "source", "key")
        }
        dataset = table.name.removesuffix("_rejected")
        trace = DocumentTrace(row["doc_id"], dataset, row["source"], row["key"], about, content_hash)
        trace.note(table, snapshot)
        if is_bad:
            place = place_of_record(row["location"], row.get("file"), row["key"])
            sentence = f"bad record ({row['reason']}) at {place}: {row['detail']}"
            trace.leave([Removal(row["doc_id"], BAD_RECORD, row["reason"])], sentence)
        yield trace
