"""Plans of chunks and their sequences, made in Spark's Python workers.

`plan_chunk` places every piece of one chunk from lengths and dependencies; `assemble` joins the pieces'
tokens in that order. Both depend only on their rows, so a chunk planned alone gets the same plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from factory._native import plan_sequences
from factory.lake.schemas.base import REPOSITORY
from factory.lake.schemas.packing import PACKED

_SEGMENTS = PACKED.columns.field("segments").type
_IN_ORDER = [(name, "ascending") for name in (*REPOSITORY, "position", "doc_id")]


def plan_chunk(documents: pa.Table, sequence_length: int, slack: float, tokens_before: int = 0) -> pa.Table:
    """Return the plan of one chunk: (sequence, position, doc_id, doc_offset, length), in that order.

    `documents` are (doc_id, repository, revision, position, n_tokens, depends_on list<string>) in any order;
    a dependency outside the chunk is ignored. A hash of their first piece orders the sequences, because
    best-fit decreasing makes them from long pieces to short ones, and a reader in order should see a mixture.

    The chunks of a table share its slack, the share of sequences that it may have above the fewest: a chunk
    may have the sequences that the table may have at its end, less the sequences at its beginning, after
    `tokens_before` tokens. If each chunk rounded up its own tokens, a table of several chunks would exceed
    the slack.
    """
    documents = documents.sort_by(_IN_ORDER)
    doc_ids = documents.column("doc_id").combine_chunks()
    depends_on = documents.column("depends_on").combine_chunks()
    dependencies = pc.index_in(pc.list_flatten(depends_on), value_set=doc_ids)
    dependents = pc.list_parent_indices(depends_on)
    inside = pc.is_valid(dependencies)
    tokens_after = tokens_before + (pc.sum(documents.column("n_tokens")).as_py() or 0)
    most_sequences = _most_sequences(tokens_after, sequence_length, slack) - _most_sequences(
        tokens_before, sequence_length, slack
    )
    planned = plan_sequences(
        _int64(documents.column("n_tokens")),
        _repositories(documents),
        _int64(dependents.filter(inside)),
        _int64(dependencies.filter(inside)),
        sequence_length,
        most_sequences,
    )
    return _in_hashed_order(_named(planned, doc_ids))


def _most_sequences(n_tokens: int, sequence_length: int, slack: float) -> int:
    """Return the most sequences that a table of so many tokens may have."""
    return int(-(-n_tokens // sequence_length) * (1.0 + slack))


def assemble(batches: Iterator[pa.RecordBatch], append: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of `PACKED` from pieces (ordinal, shard, chunk, doc_id, doc_offset, length, tokens,
    partition).

    Pieces come by ordinal and position. Their tokens are contiguous in the batch's buffer, so a sequence is a
    wider window on the buffer and copies no token.
    """
    tail: pa.Table | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        pieces = pa.Table.from_batches([batch])
        if tail is not None:
            pieces = pa.concat_tables([tail, pieces])
        ordinals = pieces.column("ordinal").to_numpy()
        last = int(
            np.searchsorted(ordinals, ordinals[-1])
        )  # the last sequence may continue in the next batch
        if last:
            yield _sequences(pieces.slice(0, last), append)
        tail = pieces.slice(last)
    if tail is not None:
        yield _sequences(tail, append)


def _sequences(pieces: pa.Table, append: int) -> pa.RecordBatch:
    pieces = pieces.combine_chunks()
    ordinals = pieces.column("ordinal").to_numpy()
    starts = np.flatnonzero(np.diff(ordinals, prepend=ordinals[0] - 1))
    ends = np.append(starts[1:], len(ordinals))
    tokens = pieces.column("tokens").combine_chunks()
    _, offsets, token_bytes = tokens.buffers()
    piece_offsets = np.frombuffer(offsets, dtype=np.int32)[tokens.offset : tokens.offset + len(tokens) + 1]
    windows = np.append(piece_offsets[starts], piece_offsets[-1]).astype(np.int32)
    lengths = pieces.column("length").to_numpy()
    segments = pa.StructArray.from_arrays(
        [pieces.column(name).combine_chunks() for name in ("doc_id", "doc_offset", "length")],
        fields=list(_SEGMENTS.value_type),
    )
    columns = {
        "ordinal": pa.array(ordinals[starts]),
        "tokens": pa.BinaryArray.from_buffers(
            pa.binary(), len(starts), [None, pa.py_buffer(windows.tobytes()), token_bytes]
        ),
        "n_tokens": pa.array(np.add.reduceat(lengths, starts)),
        "segments": pa.ListArray.from_arrays(
            pa.array(np.append(starts, len(ordinals)), pa.int32()), segments, type=_SEGMENTS
        ),
        "append": pa.array(np.full(len(starts), append, dtype=np.int64)),
        "shard": pieces.column("shard").combine_chunks().take(pa.array(starts)),
        "chunk": pieces.column("chunk").combine_chunks().take(pa.array(starts)),
        "partition": _common(pieces.column("partition").combine_chunks(), starts, ends),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in PACKED.names], schema=PACKED.columns)


def _common(partitions: pa.Array, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return the partition that all pieces of a sequence share, null if they differ."""
    codes = partitions.dictionary_encode()
    numbers = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    shared = np.minimum.reduceat(numbers, starts) == np.maximum.reduceat(numbers, starts)
    numbers = np.where(shared, numbers[ends - 1], -1)
    return pa.array(
        [codes.dictionary[number].as_py() if number >= 0 else None for number in numbers], pa.string()
    )


def _in_hashed_order(pieces: pa.Table) -> pa.Table:
    sequences = pieces.column("sequence").to_numpy()
    firsts = np.flatnonzero(np.diff(sequences, prepend=-1))
    beginnings = pieces.select(["doc_id", "doc_offset"]).take(pa.array(firsts)).to_pylist()
    hashes = np.array([_hash(first["doc_id"], first["doc_offset"]) for first in beginnings], dtype=np.uint64)
    order = np.argsort(hashes, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    new = rank[sequences]
    pieces = pieces.set_column(pieces.schema.get_field_index("sequence"), "sequence", pa.array(new))
    return _positioned(pieces.take(pa.array(np.argsort(new, kind="stable"))))


def _positioned(pieces: pa.Table) -> pa.Table:
    """Add to pieces, in order of sequence, their position in it."""
    sequences = pieces.column("sequence").to_numpy()
    firsts = np.flatnonzero(np.diff(sequences, prepend=-1))
    counts = np.diff(np.append(firsts, len(sequences)))
    positions = np.arange(len(sequences)) - np.repeat(firsts, counts)
    return pieces.append_column("position", pa.array(positions, pa.int64())).select(
        ["sequence", "position", "doc_id", "doc_offset", "length"]
    )


def _named(planned: pa.RecordBatch, doc_ids: pa.Array) -> pa.Table:
    table = pa.Table.from_batches([planned])
    return table.set_column(0, "doc_id", doc_ids.take(table.column("document").combine_chunks()))


def _repositories(documents: pa.Table) -> pa.Array:
    """Return a number for each document's revision of a repository; `documents` are in order."""
    begins = np.zeros(len(documents), dtype=bool)
    for name in REPOSITORY:
        codes = documents.column(name).combine_chunks().dictionary_encode("encode").indices.to_numpy()
        begins[1:] |= codes[1:] != codes[:-1]
    return pa.array(np.cumsum(begins))


def _int64(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return values.cast(pa.int64())


def _hash(doc_id: str, doc_offset: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{doc_id}:{doc_offset}".encode(), digest_size=8).digest(), "big")
