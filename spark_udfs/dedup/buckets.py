"""Collisions in buckets with several members, in Spark's Python workers (`native/src/dedup/bucket_pairs.rs`).

A row per member of a bucket would be dozens per document, each of which Spark would sort for a window and
hash again to find distinct ones. Spark shuffles rows of many members instead, in parts by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.regroup import whole_parts

_HELD = 1 << 20  # members or pairs held at once: 16 bytes each; a pair is passed on as two ends


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the rows (document, buckets): each document as a member of each of its buckets."""
    parts = _native.BucketParts()
    for batch in batches:
        parts.add_documents(batch)
        if len(parts) > _HELD:
            yield parts.drain()
    yield parts.drain()


def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, records) of the buckets with several members, from the rows of `parted`, sorted by part.

    A bucket is named by a hash of its members, so buckets with the same members get one name.
    """
    parts = _native.BucketParts()
    for part in whole_parts(batches):
        parts.add_shared(part)
        if len(parts) > _HELD:
            yield parts.drain()
    yield parts.drain()


def collisions(batches: Iterable[pa.RecordBatch], pair_bucket: int) -> Iterator[pa.RecordBatch]:
    """(part, records, large) of the rows of `shared`, sorted by part.

    A bucket of up to `pair_bucket` members gives the ends of all its pairs (`spark_udfs.dedup.pair_cells`), a
    larger one its members, in rows marked `large`. A pair may repeat after every `_HELD` pairs.
    """
    pairs = _native.BucketPairs(pair_bucket)
    for part in whole_parts(batches):
        pairs.add(part)
        if len(pairs) > _HELD:
            yield pairs.drain()
    yield pairs.drain()


def members(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(bucket, document) of the rows (part, records)."""
    for batch in batches:
        yield _native.bucket_members(batch)
