"""The keep rules, component by component, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native
from factory.lake.schemas.dedup import DECISIONS
from spark_udfs.regroup import whole_groups

_ROWS_AT_ONCE = 50_000

_EDGES = pa.schema([("doc_id", pa.string()), ("other", pa.string()), ("similarity", pa.float64())])


def decide(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """(doc_id, kept, duplicate_of, similarity) of the documents of whole components.

    Rows are (component, doc_id, other, similarity), sorted by component: its documents, the best first, and
    its edges.
    """
    for components in whole_groups(batches, "component", _ROWS_AT_ONCE):
        yield _native.decide(components, keep)


def decide_documents(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """DECISIONS of the documents of whole components.

    Rows are sorted by component: first its edges (doc_id, other, similarity, component) and its texts, the
    best first, then the copies of the texts, marked `copy`; documents are (doc_id, dataset, representative,
    comparable, component, partition). Memory does not grow with the copies of a text.
    """
    decided = [_native.decide(pa.RecordBatch.from_pylist([], _EDGES), keep)]
    for rows in whole_groups(map(_in_runs, batches), "run", _ROWS_AT_ONCE):
        graph = rows.filter(pc.invert(rows["copy"]))
        if graph.num_rows:
            # The rows may begin with copies of the texts that were decided last.
            decided = [decided[-1], _native.decide(graph.select(_EDGES.names), keep)]
        yield _of_documents(rows.filter(pc.is_null(rows["other"])), pa.concat_batches(decided))


def sweep(
    batches: Iterable[pa.RecordBatch], keep: str, thresholds: Sequence[float]
) -> Iterator[pa.RecordBatch]:
    """(threshold, similar_pairs, removed, removed_bytes, largest_component) of whole components.

    Rows are the rows of `decide` with the (copies, n_bytes) of each document.
    """
    for components in whole_groups(batches, "component", _ROWS_AT_ONCE):
        yield _native.sweep(components, keep, list(thresholds))


def _in_runs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with a column `run`: one value per component, and one per copy, so that copies can be split."""
    whole = pc.coalesce(batch["component"], batch["doc_id"])
    return batch.append_column("run", pc.if_else(batch["copy"], batch["doc_id"], whole))


def _of_documents(documents: pa.RecordBatch, texts: pa.RecordBatch) -> pa.RecordBatch:
    """The decisions on texts, applied to all documents with these texts."""
    index = pc.index_in(documents["representative"], texts["doc_id"].cast(pa.large_string()))
    text_kept = pc.fill_null(texts["kept"].take(index), True)
    comparable, copy = documents["comparable"], documents["copy"]
    # A document with an unknown text is neither kept nor removed: the table refuses the null.
    document_kept = pc.if_else(pc.is_valid(comparable), pc.and_(pc.invert(copy), text_kept), None)
    similarity = texts["similarity"].take(index)
    reasons = {
        "exact_copy": copy,
        "no_tokens": pc.fill_null(pc.invert(comparable), False),
        "kept": text_kept,
        "connected": pc.is_null(similarity),
    }
    representative = documents["representative"]
    partner = texts["duplicate_of"].take(index).cast(pa.large_string())
    removed = pc.invert(document_kept)
    decided = {
        "kept": document_kept,
        "reason": pc.case_when(
            pc.make_struct(*reasons.values(), field_names=[*reasons]), *reasons, "similar"
        ),
        "duplicate_of": pc.if_else(removed, pc.if_else(copy, representative, partner), None),
        "similarity": pc.if_else(removed, pc.if_else(copy, 1.0, similarity), None),
        "component": pc.if_else(comparable, documents["component"], None),
        "kept_document": pc.if_else(removed, pc.if_else(text_kept, representative, partner), None),
    }
    columns = [
        (decided[field.name] if field.name in decided else documents[field.name]).cast(field.type)
        for field in DECISIONS.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=DECISIONS.names)
