"""The members of buckets that have more than one, in Spark's Python workers.

A row a member of a bucket would be dozens a document, each of which Spark would sort for a window and hash
once more to find it distinct. What is shuffled is rows of many members instead, in parts by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from spark_udfs.whole_groups import whole_groups

Members = np.ndarray  # int64 of shape (3, n): bucket, how many members it has, document

_PART_BITS = 12  # of a bucket: a part is sorted in memory, 24 bytes a member
_HELD = 1 << 20  # members parted at once
_ROWS = 1 << 16


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the rows (document, buckets), each of them a member of each of its buckets."""
    return _in_parts(_of_documents(batch) for batch in batches)


def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the buckets that have several members, each named by a hash of them.

    Rows are those of `parted`, sorted by part. Buckets of the same members get one name.
    """
    return _in_parts(_named(members) for members in _of_whole_parts(batches))


def distinct(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(bucket, members, document), each once, of the rows of `shared`, sorted by part."""
    for members in _of_whole_parts(batches):
        each = _once(members)
        for at in range(0, each.shape[1], _ROWS):
            yield pa.RecordBatch.from_arrays(
                [pa.array(column) for column in each[:, at : at + _ROWS]],
                names=["bucket", "members", "document"],
            )


def _of_documents(batch: pa.RecordBatch) -> Members:
    buckets = batch["buckets"]
    documents = np.repeat(batch["document"].to_numpy(), buckets.value_lengths().to_numpy())
    return np.stack([buckets.flatten().to_numpy(), np.ones_like(documents), documents])


def _named(members: Members) -> Members:
    """Those of buckets of several members, which get the exclusive or of their members for a name."""
    bucket, _, document = members[:, np.argsort(members[0])]
    begins = np.flatnonzero(np.diff(bucket, prepend=bucket[:1] - 1))
    counts = np.diff(begins, append=len(bucket))
    names = np.bitwise_xor.reduceat(document, begins)
    named = np.stack([np.repeat(names, counts), np.repeat(counts, counts), document])
    return _once(named[:, named[1] > 1])


def _once(members: Members) -> Members:
    """Every member of a bucket once, in order."""
    ordered = members[:, np.lexsort(members[::-1])]
    first = np.ones(ordered.shape[1], bool)
    first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return ordered[:, first]


def _in_parts(found: Iterable[Members]) -> Iterator[pa.RecordBatch]:
    """`found` as rows (part, members), a part the members whose bucket begins with the same bits."""
    held: list[Members] = []
    for members in chain(found, [None]):
        if members is not None:
            held.append(members)
        if held and (members is None or sum(it.shape[1] for it in held) > _HELD):
            yield _parts(np.concatenate(held, axis=1))
            held = []


def _parts(members: Members) -> pa.RecordBatch:
    places = members[0].view(np.uint64) >> np.uint64(64 - _PART_BITS)
    order = np.argsort(places, kind="stable")
    parts, begins = np.unique(places[order], return_index=True)
    packed = [of_part.tobytes() for of_part in np.split(members[:, order].T, begins[1:])]
    return pa.RecordBatch.from_arrays(
        [pa.array(parts.astype(np.int32)), pa.array(packed[: len(parts)], pa.binary())],
        names=["part", "members"],
    )


def _of_whole_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[Members]:
    for parts in whole_groups(batches, "part", rows=1):
        packed = b"".join(it.as_buffer() for it in parts["members"])
        yield np.frombuffer(packed, np.int64).reshape(-1, 3).T
