"""The exact similarities of candidates, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from factory import _native
from spark_udfs.broadcast import Shared
from spark_udfs.column_fetch import ReadColumn
from spark_udfs.regroup import bounded_pieces, pieces, whole_groups

# Documents whose bags are held at once: a book's bag takes hundreds of kilobytes.
_ROWS_AT_ONCE, _ROWS_PER_PIECE = 2_000, 500
_TOKENS_PER_PIECE = 8 << 20  # 75 MB of bags, or the largest bag


def verified_pairs(
    batches: Iterable[pa.RecordBatch],
    bags: ReadColumn,
    idf: Shared[pa.UInt8Array],
    value_bits: int,
    least_estimate: float,
    threshold: float,
) -> Iterator[pa.RecordBatch]:
    """(left, right, estimate, similarity) of the pairs that reach `threshold`, exactly, each once.

    Rows are (cell, document, others, doc_id, signature), sorted by cell: each document of the cell with the
    others to compare it with. A pair with an estimate below `least_estimate` is not compared; `bags` are read
    for the documents of the remaining pairs.
    """
    for cells in whole_groups(pieces(batches, _ROWS_PER_PIECE), "cell", _ROWS_AT_ONCE):
        candidates = _native.CandidatePairs(cells, value_bits, least_estimate)
        yield candidates.verify(bags(cells.take(candidates.rows)), idf.value, threshold)


class MemberBounds(NamedTuple):
    """The bounds on the cost of a member of a large bucket."""

    signatures: int
    """Leaders whose signatures it is compared with."""
    bags: int
    """Leaders whose bags it is compared with: those whose signatures agree most."""
    neighbours: int
    """Further similar leaders, and followers of its first, in case that leader is removed."""
    held_bytes: int
    """Bytes of the leaders and followers that a task holds."""


def large_bucket_edges(
    batches: Iterable[pa.RecordBatch],
    bags: ReadColumn,
    idf: Shared[pa.UInt8Array],
    value_bits: int,
    limits: list[tuple[float, float, bool]],
    bounds: MemberBounds,
) -> Iterator[pa.RecordBatch]:
    """Edges and members without a similar leader, at each (least estimate, threshold, decides) of `limits`.

    Rows are (cell, part, leads, shown, open, uncompared, buckets, doc_id, signature, n_distinct), sorted by
    cell and part and within a part by priority, best first (`factory._native.LargeBucketEdges`).
    """
    buckets = _native.LargeBucketEdges(idf.value, value_bits, limits, *bounds)
    for members in bounded_pieces(batches, _ROWS_PER_PIECE, "n_distinct", _TOKENS_PER_PIECE):
        yield buckets.add(members.append_column("bag", bags(members)))


def sampled_pairs(
    batches: Iterable[pa.RecordBatch],
    sample: list[pa.RecordBatch],
    least_estimate: float,
    value_bits: int,
    band_bits: int,
    bands: int,
) -> Iterator[pa.RecordBatch]:
    """(sampled, other, estimate, shares_bucket) of the rows (doc_id, signature) like one of `sample`."""
    for batch in batches:
        for sampled in sample:
            yield _native.sampled_pairs(batch, sampled, least_estimate, value_bits, band_bits, bands)


def sampled_similarities(
    batches: Iterable[pa.RecordBatch], bags: ReadColumn, idf: Shared[pa.UInt8Array], value_bits: int
) -> Iterator[pa.RecordBatch]:
    """(by_words, by_weight) of all pairs of the rows (doc_id, signature): by counts of words, and by J_W."""
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return
    (sample,) = pa.Table.from_batches(rows).combine_chunks().to_batches()
    numbers = np.arange(sample.num_rows, dtype="<i8")
    columns = {
        "document": pa.array(numbers),
        "others": pa.array([numbers[number + 1 :].tobytes() for number in numbers], pa.binary()),
        "doc_id": sample["doc_id"],
        "signature": sample["signature"],
    }
    pairs = _native.CandidatePairs(pa.RecordBatch.from_pydict(columns), value_bits, 0.0)
    bags_of_pairs = bags(sample.take(pairs.rows))
    equal = _native.IdfBuilder().finish(1)  # all words weigh the same
    by_words, by_weight = (pairs.verify(bags_of_pairs, weights, 0.0) for weights in (equal, idf.value))
    yield pa.RecordBatch.from_pydict(
        {"by_words": by_words["similarity"], "by_weight": by_weight["similarity"]}
    )
