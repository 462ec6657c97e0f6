"""Who meets in buckets that have several members, in Spark's Python workers.

A row a member of a bucket would be dozens a document, each of which Spark would sort for a window and hash
once more to find it distinct. What is shuffled is rows of many members instead, in parts by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from spark_udfs.whole_groups import whole_groups

Members = np.ndarray  # int64 of shape (2, n): bucket, document

_PART_BITS = 12  # of a bucket: a part is sorted in memory, 16 bytes a member
_HELD = 1 << 20  # members parted at once
_ROWS = 1 << 16
_MET = ("bucket", "document", "other")


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the rows (document, buckets), each of them a member of each of its buckets."""
    return _in_parts(_of_documents(batch) for batch in batches)


def shared(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, members) of the buckets that have several members, each named by a hash of them.

    Rows are those of `parted`, sorted by part. Buckets of the same members get one name.
    """
    return _in_parts(_named(members) for members in _of_whole_parts(batches))


def met(batches: Iterable[pa.RecordBatch], pair_bucket: int) -> Iterator[pa.RecordBatch]:
    """(bucket, document, other) of the rows of `shared`, sorted by part.

    Of a bucket of up to `pair_bucket` members come all pairs, which may come again of another bucket; of a
    larger one its members, without `other`.
    """
    for members in _of_whole_parts(batches):
        each = _once(members)
        lengths = _lengths(each[0])
        sizes = np.repeat(lengths, lengths)
        small = sizes <= pair_bucket
        pairs = _pairs(each[1, small], sizes[small])
        yield from _rows(pairs.shape[1], document=pairs[0], other=pairs[1])
        yield from _rows(int(np.count_nonzero(~small)), bucket=each[0, ~small], document=each[1, ~small])


def _pairs(members: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Two rows, the documents of every pair of a bucket, each pair once.

    `members` come bucket by bucket, in order, each with the size of its bucket.
    """
    pairs = [np.empty((0, 2), np.int64)]
    for size in np.unique(sizes):
        documents = members[sizes == size].reshape(-1, size)
        pairs.append(documents[:, np.stack(np.triu_indices(size, 1), 1)].reshape(-1, 2))
    return np.unique(np.concatenate(pairs), axis=0).T


def _rows(n: int, **columns: np.ndarray) -> Iterator[pa.RecordBatch]:
    """`n` rows with these columns, null in the others."""
    for at in range(0, n, _ROWS):
        rows = slice(at, min(at + _ROWS, n))
        nothing = pa.nulls(rows.stop - at, pa.int64())
        yield pa.RecordBatch.from_pydict(
            {name: pa.array(columns[name][rows]) if name in columns else nothing for name in _MET}
        )


def _of_documents(batch: pa.RecordBatch) -> Members:
    buckets = batch["buckets"]
    documents = np.repeat(batch["document"].to_numpy(), buckets.value_lengths().to_numpy())
    return np.stack([buckets.flatten().to_numpy(), documents])


def _named(members: Members) -> Members:
    """Those of buckets of several members, which get the exclusive or of their members for a name."""
    bucket, document = members[:, np.argsort(members[0])]
    sizes = _lengths(bucket)
    names = np.bitwise_xor.reduceat(document, np.cumsum(sizes) - sizes)
    several = np.repeat(sizes > 1, sizes)
    return _once(np.stack([np.repeat(names, sizes), document])[:, several])


def _lengths(ordered: np.ndarray) -> np.ndarray:
    """How often each value comes, one after the other."""
    begins = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    return np.diff(begins, append=len(ordered))


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
        yield np.frombuffer(packed, np.int64).reshape(-1, 2).T
