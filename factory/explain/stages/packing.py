"""What packing says: which sequences hold a document, that it has no tokens, and how full sequences are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from factory.explain.stages.document_trace import DocumentTrace, Side
from factory.explain.stages.removals import Read, removals_of
from factory.explain.stages.stage import Figure, Section, StageView, SummaryScope
from factory.lake import names
from factory.lake.identity import DERIVED_FROM_KEY, draw
from factory.lake.names import PACKING, TableName
from factory.lake.schemas.packing import N_DOCUMENTS, PLACEMENTS, SEQUENCE_LENGTH, TOKENIZED, VALIDATION
from factory.lake.tables import Lake, Published

NO_TOKENS = "no_tokens"  # the reason of a document without tokens, which no sequence contains
PACKED = "packed"
_SHOWN = 8  # pieces listed before "and N more"


@dataclass(frozen=True)
class Fill:
    """The packed sequences of a dataset: `fill` is tokens over the room in all sequences."""

    sequences: int
    tokens: int
    fill: float
    split_documents_that_fit: int


class PackingView(StageView):
    """The tokens of documents, and the training sequences."""

    stage = PACKING
    sections = (Section("packing", "Order and packing", "dataset"),)

    def follow(self, read: Read, traces: Mapping[str, DocumentTrace]) -> Collection[str]:
        assert read.dataset is not None
        for part in names.packed_parts(read.names, read.dataset):
            waiting = {doc_id: trace for doc_id, trace in traces.items() if not trace.placements}
            _follow_part(read, part, waiting)
        return [doc_id for doc_id, trace in traces.items() if not trace.placements]

    def removals(self, read: Read, ids: pa.Array | None) -> Iterator[pa.RecordBatch]:
        tables = read.tables("tokenized") if read.dataset is None else [names.tokenized(read.dataset)]
        for table in tables:
            for batch in read.batches(table, TOKENIZED, ["doc_id"], ids, n_tokens=0):
                yield removals_of(doc_id=batch["doc_id"], outcome=NO_TOKENS, reason=NO_TOKENS)

    def explain(self, removals: Sequence[object]) -> str:
        return "it has no tokens, so no sequence holds it"

    def line(self, trace: DocumentTrace) -> str:
        pieces = [
            f"sequence {ordinal:,} (tokens {offset:,} to {offset + length:,})"
            for ordinal, offset, length in trace.placements[:_SHOWN]
        ]
        n_more = len(trace.placements) - _SHOWN
        more = f" and {n_more} more" if n_more > 0 else ""
        side = f"; {trace.side}" if trace.side else ""
        return f"{', '.join(pieces)}{more}{side}"

    def tables(self, scope: SummaryScope, dataset: str) -> Sequence[TableName]:
        parts = names.packed_parts(scope.tables, dataset)
        return names.tokenized(dataset), *map(names.packed, parts)

    def count(self, scope: SummaryScope, published: Published) -> tuple[int | None, int]:
        n_documents = published.properties.get(N_DOCUMENTS)
        return None if n_documents is None else int(n_documents), published.rows

    def figures(self, scope: SummaryScope) -> Iterator[Figure]:
        parts = [
            (dataset, part)
            for dataset in scope.datasets
            for part in names.packed_parts(scope.tables, dataset)
        ]
        for dataset, part in parts:
            fill = _fill(scope.lake, dataset, part)
            line = (
                f"{fill.sequences:,} sequences, {fill.tokens:,} tokens, {fill.fill:.2%} full, "
                f"{fill.split_documents_that_fit:,} documents split that would fit"
            )
            yield Figure("packing", part, asdict(fill), [line])


VIEW = PackingView()


def _follow_part(read: Read, part: str, traces: Mapping[str, DocumentTrace]) -> None:
    """Add the placements in one packed table of a dataset to the traces of the documents that it holds."""
    sequences, placements = names.packed(part), names.placements(part)
    columns = ("doc_id", "ordinal", "doc_offset", "length")
    for batch in read.batches(placements, PLACEMENTS, columns, pa.array(traces, pa.string())):
        for row in batch.to_pylist():
            placement = (row["ordinal"], row["doc_offset"], row["length"])
            traces[row["doc_id"]].placements.append(placement)
    for trace in traces.values():
        trace.placements.sort(key=lambda placement: placement[1])
        if trace.placements:
            trace.note(placements, read.snapshot(placements))
            trace.sequences = str(sequences)
            trace.side = _side(read, sequences, trace)
            trace.outcome = PACKED
            of_part = " of the validation part" if names.is_validation(sequences) else ""
            trace.reason = f"packed into {len(trace.placements)} sequence(s){of_part}"


def _side(read: Read, sequences: TableName, trace: DocumentTrace) -> Side | None:
    """Return the side of a document, None if its dataset has no validation part."""
    share = read.lake.published_at(sequences, read.snapshot(sequences)).properties.get(VALIDATION)
    if share is None:
        return None
    repository = trace.about.get("repository")
    key = trace.about.get(DERIVED_FROM_KEY, trace.key)
    return Side(
        part="validation" if names.is_validation(sequences) else "training",
        drawn_by=f"repository `{repository}`" if repository else f"key `{key}`",
        draw=draw(repository, key),
        share=float(share),
    )


def _fill(lake: Lake, dataset: str, part: str) -> Fill:
    rows = lake.read(names.packed(part), ["n_tokens"])["n_tokens"]
    length = int(lake.table(names.packed(part)).properties[SEQUENCE_LENGTH])
    tokens = int(pc.sum(rows).as_py() or 0)
    pieces: Counter[str] = Counter(lake.read(names.placements(part), ["doc_id"])["doc_id"].to_pylist())
    sizes = lake.read(names.tokenized(dataset), ["doc_id", "n_tokens"]).to_pylist()
    return Fill(
        sequences=len(rows),
        tokens=tokens,
        fill=tokens / (len(rows) * length) if len(rows) else 1.0,
        split_documents_that_fit=sum(
            1 for row in sizes if row["n_tokens"] <= length and pieces[row["doc_id"]] > 1
        ),
    )
