"""Buckets with several members, in Spark's Python workers (`native/src/dedup/pairs/bucket_pairs.rs`).

A row per member of a bucket would be dozens per document, and Spark would sort each for a window and hash it
again to find distinct ones. Spark shuffles rows of many members instead, in parts by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.regroup import drained, whole_parts


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the rows (document, buckets): each document as a member of each of its buckets."""
    parts = _native.RecordParts()
    return drained(parts, parts.add_documents, batches)


def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the buckets with several members, from the rows of `parted`, sorted by part.

    A bucket is named by a hash of its members, so buckets with the same members get one name.
    """
    parts = _native.RecordParts()
    return drained(parts, parts.add_shared, whole_parts(batches))


def collisions(batches: Iterable[pa.RecordBatch], pair_bucket: int) -> Iterator[pa.RecordBatch]:
    """(part, records, large) of the rows of `shared`, sorted by part.

    A bucket of up to `pair_bucket` members gives the ends of all its pairs (`spark_udfs.dedup.pair_cells`), a
    larger one its members, in rows marked `large`. A pair may repeat after every `HELD` pairs.
    """
    pairs = _native.BucketPairs(pair_bucket)
    return drained(pairs, pairs.add, whole_parts(batches))


def members(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(bucket, document) of the rows (part, records)."""
    for batch in batches:
        yield _native.bucket_members(batch)
