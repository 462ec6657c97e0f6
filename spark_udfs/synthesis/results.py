"""The results of a slice, as a worker writes them, and as Spark reads them into tables.

A file has the rows of whole items: the records and refusals of each, then a row of outcome `item` with the
time that it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from factory.lake.identity import doc_id
from factory.lake.schemas.ingest import REJECTED
from factory.lake.schemas.synthesis import ITEMS
from factory.lake.schemas.synthesis_results import ITEM, RECORD, REFUSAL, RESULT

RECORDS = pa.schema(
    [RESULT.field(name) for name in ("doc_id", "number", "source", "item_key", "key", "text", "values")]
)

_SAMPLE_BYTES = 256  # bytes of a rejected record to keep

FILE = "file"  # the column of the addresses of the files

ReadResults = Callable[[str], Iterable[pa.RecordBatch]]  # the rows of the file at an address, in order

_Counts = dict[str, Counter[str]]  # of outcomes, then of source documents


def item_rows(files: Iterable[pa.RecordBatch], read: ReadResults) -> Iterator[pa.RecordBatch]:
    """Yield batches of `ITEMS` for batches of the addresses of files."""
    for file in _addresses(files):
        counts: _Counts = {RECORD: Counter(), REFUSAL: Counter()}
        for results in read(file):  # the row of an item follows those of its outcomes
            for outcome, of_documents in counts.items():
                of_documents.update(results.filter(_is(results, outcome))["doc_id"].to_pylist())
            yield _items(results.filter(_is(results, ITEM)), counts)


def _items(items: pa.RecordBatch, counts: _Counts) -> pa.RecordBatch:
    ids = items["doc_id"].to_pylist()
    columns = {
        "n_records": pa.array([counts[RECORD][doc_id] for doc_id in ids], pa.int64()),
        "n_refusals": pa.array([counts[REFUSAL][doc_id] for doc_id in ids], pa.int64()),
        "partition": pa.nulls(len(ids), pa.string()),
    }
    arrays = [columns[name] if name in columns else items[name] for name in ITEMS.names]
    return pa.RecordBatch.from_arrays(arrays, schema=ITEMS.columns)


def record_rows(files: Iterable[pa.RecordBatch], read: ReadResults) -> Iterator[pa.RecordBatch]:
    """Yield batches of `RECORDS` for batches of the addresses of files."""
    for file in _addresses(files):
        for results in read(file):
            yield results.filter(_is(results, RECORD)).select(RECORDS.names)


def refusal_rows(
    files: Iterable[pa.RecordBatch], read: ReadResults, dataset: str
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `REJECTED` for batches of the addresses of files."""
    for file in _addresses(files):
        for results in read(file):
            refusals = results.filter(_is(results, REFUSAL)).to_pylist()
            rows = [_rejected(refusal, dataset) for refusal in refusals]
            yield pa.RecordBatch.from_pylist(rows, schema=REJECTED.columns)


def _rejected(refusal: dict[str, Any], dataset: str) -> dict[str, Any]:
    source, key = source_of(refusal["source"], dataset), key_of(refusal["item_key"], refusal["key"])
    return {
        "doc_id": doc_id(source, key),
        "source": source,
        "key": key,
        "location": f"document {refusal['doc_id']}",
        "reason": refusal["reason"],
        "detail": refusal["detail"],
        "n_bytes": len(refusal["sample"] or b""),
        "sample": (refusal["sample"] or b"")[:_SAMPLE_BYTES],
    }


def capped_rows(records: Iterable[pa.RecordBatch], column: str, most: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of `REJECTED` for records above the cap `most` of a column."""
    for batch in records:
        rows = [
            {
                "doc_id": doc_id(row["source"], row["key"]),
                "source": row["source"],
                "key": row["key"],
                "location": f"{column} {row[column]}",
                "reason": "above_cap",
                "detail": f"`{row[column]}` has {most} records with a smaller hash, "
                f"the cap of a {_noun(column)}.",
                "n_bytes": len(row["text"].encode()),
                "sample": row["text"].encode()[:_SAMPLE_BYTES],
            }
            for row in batch.to_pylist()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=REJECTED.columns)


def _noun(column: str) -> str:
    return "document" if column == "doc_id" else column


def source_of(source: str, dataset: str) -> str:
    """Return the source of records of a document: named after both, as for all derived documents."""
    return f"{source}/{dataset}"


def key_of(item_key: str, key: str) -> str:
    """Return the key of a result among the results of all documents."""
    return f"{item_key}#{key}"


def _addresses(files: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in files:
        yield from batch[FILE].to_pylist()


def _is(results: pa.RecordBatch, outcome: str) -> pa.Array:
    return pc.equal(results["outcome"], outcome)
