"""Who meets in buckets that have several members, in Spark's Python workers (`native/src/bucket_pairs.rs`).

A row a member of a bucket would be dozens a document, each of which Spark would sort for a window and hash
once more to find it distinct. What is shuffled is rows of many members instead, in parts by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.whole_groups import whole_groups

_HELD = 1 << 20  # members, or pairs, held at once: 16 bytes each
_ROWS = 1 << 16


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the rows (document, buckets), each of them a member of each of its buckets."""
    parts = _native.BucketParts()
    for batch in batches:
        parts.add_documents(batch)
        if len(parts) > _HELD:
            yield parts.drain()
    yield parts.drain()


def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the buckets that have several members, each named by a hash of them.

    Rows are those of `parted`, sorted by part. Buckets of the same members get one name.
    """
    parts = _native.BucketParts()
    for part in whole_groups(batches, "part", rows=1):
        parts.add_shared(part)
        if len(parts) > _HELD:
            yield parts.drain()
    yield parts.drain()


def met(batches: Iterable[pa.RecordBatch], pair_bucket: int) -> Iterator[pa.RecordBatch]:
    """(bucket, document, other) of the rows of `shared`, sorted by part.

    Of a bucket of up to `pair_bucket` members come all pairs; of a larger one its members, without `other`.
    A pair may come again with every `_HELD` rows.
    """
    pairs = _native.BucketPairs(pair_bucket)
    for part in whole_groups(batches, "part", rows=1):
        pairs.add(part)
        if len(pairs) > _HELD:
            yield from _in_batches(pairs.drain())
    yield from _in_batches(pairs.drain())


def _in_batches(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for begin in range(0, rows.num_rows, _ROWS):
        yield rows.slice(begin, _ROWS)
