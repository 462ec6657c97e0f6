"""What deduplication says: which document a removed one duplicates, or why its repository went."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.removals import Read, Removal, removals_of
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope, count_by, counts_figure
from factory.lake import names
from factory.lake.names import DEDUP, TableName
from factory.lake.repository import WITH_ITS_REPOSITORY, repositories_of, repository_id, why_removed
from factory.lake.schemas.dedup import DECISIONS
from factory.lake.schemas.ingest import RAW

DUPLICATE, REPOSITORY = "duplicate", "repository"
EXACT_COPY = "exact_copy"  # the reason of a document whose text another document has
_DECIDED = ("doc_id", "dataset", "reason", "similarity", "duplicate_of")


class DedupView(StageView):
    """The decisions of dedup groups."""

    stage = DEDUP
    sections = (Section("duplicates", "Duplicates"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        ids, decided_against = pa.array(traces, pa.string()), []
        columns = ("doc_id", "kept", "reason", "component")
        for table in _decisions(read):
            for batch in read.batches(table, DECISIONS, columns, ids, **_own(read)):
                for row in batch.to_pylist():
                    trace = traces[row["doc_id"]]
                    decided_against += [] if row["kept"] else [row["doc_id"]]
                    trace.note(table, read.snapshot(table))
                    trace.component = row["component"]
                    if row["reason"] in WITH_ITS_REPOSITORY and repositories_of(table) in read.names:
                        trace.note(repositories_of(table), read.snapshot(repositories_of(table)))
        return decided_against

    def removals(self, read: Read, ids: pa.Array | None) -> Iterator[pa.RecordBatch]:
        for table in _decisions(read):
            names_kept = _column_of_kept(read, table)
            columns = dict.fromkeys((*_DECIDED, names_kept))
            for batch in read.batches(table, DECISIONS, columns, ids, **_own(read), kept=False):
                with_repository = pc.is_in(batch["reason"], pa.array(WITH_ITS_REPOSITORY))
                yield removals_of(
                    doc_id=batch["doc_id"],
                    outcome=pc.if_else(with_repository, REPOSITORY, DUPLICATE),
                    reason=batch["reason"],
                    value=batch["similarity"],
                    partner=batch["duplicate_of"],
                    kept_document=batch[names_kept],
                    sentence=_repositories_of(read, table, batch.filter(with_repository), batch["doc_id"])
                    if ids is not None and with_repository.true_count
                    else None,
                )

    def survivors(self, read: Read) -> Iterator[pa.RecordBatch]:
        for table in _decisions(read):
            yield from read.batches(table, DECISIONS, ("doc_id", "reason"), **_own(read), kept=True)

    def explain(self, removals: Sequence[Removal]) -> str:
        removal = removals[-1]  # several groups may have decided on the document
        partner, similarity = removal.partner, removal.value
        if removal.outcome == REPOSITORY:
            if partner is None:
                return f"{removal.sentence}; no kept document resembles it"
            return (
                f"{removal.sentence}; the kept document {partner} resembles it (similarity {similarity:.4f})"
            )
        if similarity is None:
            return (
                f"removed for {partner}, which is kept: joined to it through others, similar to no kept "
                "document"
            )
        if removal.reason != EXACT_COPY:
            return f"a near duplicate of {partner}, which is kept (similarity {similarity:.4f})"
        if similarity < 1:
            return (
                f"an exact copy of a near duplicate of {partner}, which is kept (similarity {similarity:.4f})"
            )
        if removal.kept_document == partner:
            return f"an exact copy of {partner}, which is kept (similarity {similarity:.4f})"
        return (
            f"an exact copy of {partner} (similarity {similarity:.4f}); {removal.kept_document} is kept in "
            "place of both"
        )

    def line(self, trace: DocumentTrace) -> str:
        if trace.component is None:
            return ""
        return "removed" if trace.outcome in (DUPLICATE, REPOSITORY) else "kept"

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        return (names.deduplicated(dataset),)

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        for group in scope.groups:
            reasons = scope.lake.read(names.dedup(group, "decisions"), ["reason"])
            yield counts_figure("duplicates", group, count_by(reasons, "reason"))


VIEW = DedupView()


def _decisions(read: Read) -> list[TableName]:
    return read.tables("dedup", "_decisions")


def _column_of_kept(read: Read, table: TableName) -> str:
    """The column that names the kept document: decisions of earlier versions have it in `duplicate_of`."""
    is_earlier = read.has_rows(table) and "kept_document" not in read.columns(table)
    return "duplicate_of" if is_earlier else "kept_document"


def _own(read: Read) -> dict[str, str]:
    """The condition that a decision is on a document of the dataset that is read."""
    return {} if read.dataset is None else {"dataset": read.dataset}


def _repositories_of(read: Read, table: TableName, removed: pa.RecordBatch, ids: pa.Array) -> pa.Array:
    """Return a sentence for each of `ids` that was `removed` with its repository, else null."""
    why = why_removed(read.lake, table, read.snapshot(table))
    repositories: dict[str, tuple[str | None, str | None]] = {}
    for raw in _raw(read):
        columns = ("doc_id", "repository", "revision")
        for batch in read.batches(raw, RAW, columns, removed["doc_id"]):
            for row in batch.to_pylist():
                repositories[row["doc_id"]] = (row["repository"], row["revision"])
    sentences = {
        row["doc_id"]: why(repository_id(row["dataset"], *repositories.get(row["doc_id"], (None, None))))
        for row in removed.to_pylist()
    }
    return pa.array([sentences.get(doc_id) for doc_id in ids.to_pylist()], pa.string())


def _raw(read: Read) -> list[TableName]:
    """The raw tables that may hold the documents."""
    if read.dataset is not None:
        return [names.raw(read.dataset)]
    return [table for table in read.tables("raw") if not names.holds_bad_records(table)]
