"""Bags of texts and counts of their tokens, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.hstack import hstack
from spark_udfs.regroup import drained, whole_groups

_FREQUENCIES_AT_ONCE = 1 << 20  # 16 MiB


def make_bags(
    batches: Iterable[pa.RecordBatch], lexer: str, max_distinct: int, text_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Every column but `text`, then (n_tokens, bag, token_texts) (`native/src/dedup/bags/packed_bag.rs`)."""
    maker = _native.BagMaker(lexer, max_distinct, text_bytes)
    for batch in batches:
        yield hstack(batch.drop_columns("text"), maker.make(batch.column("text")))


def count_tokens(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, counts) of the rows (copies, bag, token_texts); `copies` counts the documents with the bag.

    A part holds tokens that begin with the same bits, and repeats after every `HELD` tokens;
    `merge_counts` reads its counts. Spark would spend longer on a row per token than counting takes.
    """
    counter = _native.TokenCounter()
    return drained(counter, counter.add, batches)


def merge_counts(batches: Iterable[pa.RecordBatch], text_documents: int) -> Iterator[pa.RecordBatch]:
    """(token, document_frequency, term_frequency, text) of every token of (part, counts), sorted by part.

    Tokens in fewer than `text_documents` documents have no text.
    """
    for parts in whole_groups(batches, "part", rows=1):
        yield _native.merge_counts(parts, text_documents)


def pack_frequencies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(tokens, document_frequencies, n_documents): each row packs many (token, document_frequency).

    Tokens and frequencies are the bytes of int64 arrays.
    """
    for rows in _chunks(batches, _FREQUENCIES_AT_ONCE):
        yield pa.RecordBatch.from_pydict(
            {
                "tokens": [rows["token"].to_numpy().tobytes()],
                "document_frequencies": [rows["document_frequency"].to_numpy().tobytes()],
                "n_documents": [rows["n_documents"][0].as_py()],
            }
        )


def _chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The batches in tables of at least `rows` rows; the last table may be smaller."""
    pending: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        pending.append(batch)
        n_rows += batch.num_rows
        if n_rows >= rows:
            yield pa.Table.from_batches(pending)
            pending, n_rows = [], 0
    if n_rows:
        yield pa.Table.from_batches(pending)
