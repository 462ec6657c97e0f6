"""Token counts of texts and the idf table they make, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from factory import _native

IDF_SLOTS = 1 << 20
_TOKENS_HELD = 1 << 20  # tokens counted in a worker before they are passed on: about 100 MB
_ROWS_AT_ONCE = 1 << 20


def count_tokens(batches: Iterable[pa.RecordBatch], kind: str, text_bytes: int) -> Iterator[pa.RecordBatch]:
    """(token, document_frequency, term_frequency, text) of the column `text`; a token may come again."""
    counter = _native.TokenCounter(kind, text_bytes)
    for batch in batches:
        counter.add(batch.column("text"))
        if len(counter) > _TOKENS_HELD:
            yield counter.drain()
    yield counter.drain()


def partial_idf(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(idf, n_documents) of the rows (token, document_frequency, n_documents): one row, or none for none."""
    tables: list[np.ndarray] = []
    n_documents = 0
    for rows in _chunks(batches, _ROWS_AT_ONCE):
        n_documents = rows["n_documents"][0].as_py()
        tokens, frequencies = (rows[name].combine_chunks() for name in ("token", "document_frequency"))
        part = _native.idf_table(tokens, frequencies, n_documents)
        tables = [merge_idf([*tables, np.frombuffer(part, np.uint8)], unseen=0)]
    for table in tables:
        yield pa.RecordBatch.from_pydict({"idf": [table.tobytes()], "n_documents": [n_documents]})


def merge_idf(tables: Sequence[np.ndarray], unseen: int) -> np.ndarray:
    """The least idf of each slot over one or more `tables`; `unseen` where all have zero."""
    wrapped = [table - np.uint8(1) for table in tables]  # zero becomes 255, the greatest
    merged = np.minimum.reduce(wrapped) + np.uint8(1)
    return np.where(merged == 0, np.uint8(unseen), merged)


def _chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The batches in tables of at least `rows` rows, the last one smaller."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        if n_held >= rows:
            yield pa.Table.from_batches(held)
            held, n_held = [], 0
    if n_held:
        yield pa.Table.from_batches(held)
