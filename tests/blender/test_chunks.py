"""Context parallel chunks: slices of the whole batch, from 2 bytes a token on the wire."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.batch import Batch
from blender.chunks import Chunk, Chunking, Piece, cut, without_tokens
from blender.errors import InvalidRequest
from blender.ipc import from_ipc, to_ipc
from tests.blender.drawn_rows import packed, packed_rows

TOKEN_ARRAYS = ("tokens", "targets", "position_ids", "document_ids")
RANKS = st.sampled_from([1, 2, 3, 4, 8])


def chunks(rows: pa.RecordBatch, of: int, chunking: Chunking) -> list[Chunk]:
    """Every rank's chunk, after a trip over the wire."""
    cuts = (cut(rows, Piece(rank, of, chunking)) for rank in range(of))
    return [Chunk(from_ipc(b"".join(to_ipc(part)))) for part in cuts]


def whole(rows: pa.RecordBatch, of: int) -> Batch:
    """The batch of the rows, padded until it divides into 2 parts a rank."""
    field = rows.schema.field("tokens")
    length = int(field.metadata[b"factory.sequence-length"])
    padded = -(-length // (2 * of)) * 2 * of if of > 1 else length
    field = field.with_metadata({**field.metadata, b"factory.sequence-length": str(padded)})
    return Batch(0, 1, rows.set_column(rows.schema.names.index("tokens"), field, rows.column("tokens")))


def partitioned_indices(cu_seqlens: npt.NDArray[np.int32], total: int, of: int, rank: int) -> list[int]:
    """The rule of TransformerEngine's `thd_get_partitioned_indices`, index by index.

    Its kernel divides all borders by the number of ranks; an index in the first half of its sequence moves
    by `rank` halves, one in the second by the halves of all later parts.
    """
    borders = [int(end) // of for end in cu_seqlens]
    indices = []
    for token in range(total // of):
        sequence = max(i for i in range(len(borders) - 1) if borders[i] <= token)
        half = (borders[sequence + 1] - borders[sequence]) // 2
        index = token + borders[sequence] * (of - 1)
        if token < borders[sequence] + half:
            index += half * rank
        else:
            index += half * (of * 2 - 2 - rank)
        indices.append(index)
    return indices


def toy_loss(part: Batch | Chunk) -> int:
    """A sum over all tokens with a target, which any wrong token, target or position changes."""
    tokens, targets = part.tokens.reshape(-1).astype(np.int64), part.targets.reshape(-1)
    terms = (tokens + 1) * (targets + 7) * (part.position_ids.reshape(-1) + 3)
    return int(terms[targets >= 0].sum())


def assert_same_rows(chunk: Chunk, batch: Batch) -> None:
    assert len(chunk) == len(batch)
    for name in ("source", "ordinal", "epoch", "n_tokens"):
        assert getattr(chunk, name).dtype == getattr(batch, name).dtype
        assert getattr(chunk, name).tolist() == getattr(batch, name).tolist()
    kept = set(batch.arrow.schema.names) - {"tokens", "segment_lengths"}
    assert all(chunk.arrow.column(name).equals(batch.arrow.column(name)) for name in kept)


@pytest.mark.invariant(
    "The chunks of all context parallel ranks have every token once and the loss of the whole batch, and "
    "divide documents as TransformerEngine does."
)
@settings(deadline=None)
@given(packed_rows(), RANKS)
def test_chunks_of_rows_are_slices_of_the_padded_batch(rows: pa.RecordBatch, of: int) -> None:
    batch = whole(rows, of)
    length = batch.sequence_length
    parts = np.split(np.arange(length), 2 * of) if of > 1 else [np.arange(length)]
    for rank, chunk in enumerate(chunks(rows, of, "row")):
        places = np.concatenate([parts[rank], parts[-1 - rank]]) if of > 1 else parts[0]
        for name in TOKEN_ARRAYS:
            array, expected = getattr(chunk, name), getattr(batch, name)
            assert array.dtype == expected.dtype
            assert array.shape == (rows.num_rows, length // of)
            assert array.tolist() == expected[:, places].tolist(), name
        assert chunk.places.tolist() == [places.tolist()] * rows.num_rows
        assert chunk.cu_seqlens.tolist() == batch.cu_seqlens.tolist()
        assert_same_rows(chunk, batch)


@settings(deadline=None)
@given(packed_rows(), RANKS)
def test_chunks_of_documents_are_zigzags_of_each_document(rows: pa.RecordBatch, of: int) -> None:
    batch = Batch(0, 1, rows)
    length, n_parts = batch.sequence_length, 2 * of if of > 1 else 1
    for rank, chunk in enumerate(chunks(rows, of, "document")):
        expected: dict[str, list[int]] = {name: [] for name in TOKEN_ARRAYS}
        borders, padded = [0], [0]
        for row in range(len(batch)):
            for number in range(batch.document_ids[row].max() + 1):
                at = np.flatnonzero(
                    (batch.document_ids[row] == number) & (np.arange(length) < batch.n_tokens[row])
                )
                if not len(at):
                    continue
                width = -(-len(at) // n_parts)
                borders.append(borders[-1] + len(at))
                padded.append(padded[-1] + width * n_parts)
                for part in (rank, n_parts - 1 - rank) if of > 1 else (0,):
                    for position in range(part * width, (part + 1) * width):
                        is_token = position < len(at)
                        place = (row, at[position]) if is_token else None
                        expected["tokens"].append(batch.tokens[place] if place else 0)
                        expected["targets"].append(batch.targets[place] if place else -100)
                        expected["position_ids"].append(position)
                        expected["document_ids"].append(number)
        for name, values in expected.items():
            assert getattr(chunk, name).dtype == getattr(batch, name).dtype
            assert getattr(chunk, name).tolist() == values, name
        assert chunk.cu_seqlens.tolist() == borders
        assert chunk.cu_seqlens_padded.tolist() == padded
        assert_same_rows(chunk, batch)


@pytest.mark.invariant(
    "The chunks of all context parallel ranks have every token once and the loss of the whole batch, and "
    "divide documents as TransformerEngine does."
)
@settings(deadline=None)
@given(packed_rows(), st.sampled_from([2, 3, 4, 8]))  # one rank keeps all tokens, without a call of the rule
def test_documents_divide_as_transformer_engine_divides_them(rows: pa.RecordBatch, of: int) -> None:
    parts = chunks(rows, of, "document")
    total = int(parts[0].cu_seqlens_padded[-1])
    for rank, chunk in enumerate(parts):
        borders = chunk.cu_seqlens_padded
        assert chunk.places.tolist() == partitioned_indices(borders, total, of, rank)
        assert {chunk.cu_seqlens.dtype, borders.dtype, chunk.places.dtype} == {np.dtype(np.int32)}
    everywhere = np.concatenate([chunk.places for chunk in parts])
    assert sorted(everywhere.tolist()) == list(range(total))


@pytest.mark.invariant(
    "The chunks of all context parallel ranks have every token once and the loss of the whole batch, and "
    "divide documents as TransformerEngine does."
)
@settings(deadline=None)
@given(packed_rows(), RANKS, st.sampled_from(["row", "document"]))
def test_all_ranks_have_every_token_once_and_the_loss_of_the_batch(
    rows: pa.RecordBatch, of: int, chunking: Chunking
) -> None:
    batch = Batch(0, 1, rows)
    parts = chunks(rows, of, chunking)
    sent = np.concatenate([part.tokens.reshape(-1) for part in parts])
    assert sorted(sent[sent > 0].tolist()) == sorted(batch.tokens[batch.tokens > 0].tolist())
    assert sum(toy_loss(part) for part in parts) == toy_loss(batch)


@settings(deadline=None)
@given(packed_rows(), RANKS, st.sampled_from(["row", "document"]), st.data())
def test_a_microbatch_equals_a_chunk_of_its_rows(
    rows: pa.RecordBatch, of: int, chunking: Chunking, data: st.DataObject
) -> None:
    piece = Piece(data.draw(st.integers(0, of - 1)), of, chunking)
    first = data.draw(st.integers(0, rows.num_rows))
    stop = data.draw(st.integers(first, rows.num_rows))
    alone = Chunk(cut(rows.slice(first, stop - first), piece))
    received = Chunk(cut(rows, piece))
    view = received.of_rows(0, stop).of_rows(first, stop)
    names = [*TOKEN_ARRAYS, "places", "n_tokens", "source", "ordinal", "epoch", "cu_seqlens"]
    for part in (view, pickle.loads(pickle.dumps(view)), Chunk(received.arrow.slice(first, stop - first))):
        assert len(part) == stop - first
        assert part.piece == piece
        for name in [*names, *(["cu_seqlens_padded"] if chunking == "document" else [])]:
            assert np.array_equal(getattr(part, name), getattr(alone, name)), name
    assert view.arrow.equals(received.arrow.slice(first, stop - first), check_metadata=True)


@settings(deadline=None)
@given(packed_rows(), RANKS, st.sampled_from(["row", "document"]), st.data())
def test_lengths_alone_give_all_but_tokens_and_targets(
    rows: pa.RecordBatch, of: int, chunking: Chunking, data: st.DataObject
) -> None:
    piece = Piece(data.draw(st.integers(0, of - 1)), of, chunking)
    expected = Chunk(cut(rows, piece))
    chunk = Chunk(from_ipc(b"".join(to_ipc(without_tokens(rows, piece)))))
    assert "tokens" not in chunk.arrow.schema.names
    assert chunk.sequence_length == expected.sequence_length
    for name in ("position_ids", "document_ids", "places", "n_tokens", "cu_seqlens", "source"):
        assert np.array_equal(getattr(chunk, name), getattr(expected, name)), name
    for name in ("tokens", "targets"):
        with pytest.raises(InvalidRequest, match="lengths alone, for a pipeline stage"):
            getattr(chunk, name)


def test_the_drawn_example_is_what_the_module_gives() -> None:
    rows = packed([[5, 2]], 8)
    early, late = chunks(rows, 2, "row")
    assert (early.tokens.tolist(), late.tokens.tolist()) == ([[1, 2, 7, 0]], [[3, 4, 5, 6]])
    assert early.targets.tolist() == [[2, 3, -100, -100]]
    early, late = chunks(rows, 2, "document")
    assert (early.tokens.tolist(), late.tokens.tolist()) == ([1, 2, 0, 0, 6, 0], [3, 4, 5, 0, 7, 0])
    assert early.targets.tolist() == [2, 3, -100, -100, 7, -100]
    assert early.cu_seqlens.tolist() == [0, 5, 7]
    assert early.cu_seqlens_padded.tolist() == [0, 8, 12]


def test_a_single_rank_gets_the_tokens_without_a_copy() -> None:
    rows = packed([[4, 2], [6], [1, 5]], 6, width=4)
    chunk = Chunk(cut(rows, Piece()))
    assert chunk.tokens.ctypes.data == rows.column("tokens").buffers()[2].address


@pytest.mark.parametrize("chunking", ["row", "document"])
def test_a_token_takes_two_bytes_on_the_wire(chunking: Chunking) -> None:
    rng = np.random.default_rng(0)
    cuts = [np.sort(rng.choice(np.arange(1, 8192), 11, replace=False)) for _ in range(16)]
    rows = packed([np.diff([0, *ends, 8192]).tolist() for ends in cuts], 8192)
    parts = [cut(rows, Piece(rank, 8, chunking)) for rank in range(8)]
    n_bytes = sum(part.column(name).nbytes for part in parts for name in ("tokens", "next_tokens"))
    assert n_bytes / (16 * 8192) <= 2.1


def test_padding_takes_no_byte_on_the_wire() -> None:
    short = cut(packed([[1]], 4096), Piece(3, 4))
    assert short.column("tokens").to_pylist() == [b""]
    assert Chunk(short).tokens.tolist() == [[0] * 1024]


def test_a_null_row_is_empty() -> None:
    rows = packed([[4, 2], []], 6)
    tokens = pa.array([rows.column("tokens")[0].as_py(), None], pa.binary())
    segments = pa.array([[4, 2], None], pa.list_(pa.int32()))
    nulls = rows.set_column(4, rows.schema.field(4), tokens).set_column(5, rows.schema.field(5), segments)
    for of in (1, 2):
        for part, expected in zip(chunks(nulls, of, "row"), chunks(rows, of, "row"), strict=True):
            assert part.targets.tolist() == expected.targets.tolist()
            assert part.n_tokens.tolist() == [6, 0]


def test_a_pickled_microbatch_leaves_the_other_rows_behind() -> None:
    received = Chunk(cut(packed([[40, 24]] * 10_000, 64), Piece(1, 4)))
    assert received.tokens.shape == (10_000, 16)  # computed for all microbatches
    assert len(pickle.dumps(received.of_rows(5_000, 5_002))) < 4_000


def test_other_columns_and_metadata_stay() -> None:
    rows = packed([[4, 2], [3]], 6).append_column("microbatch", pa.array([0, 1], pa.int32()))
    rows = rows.replace_schema_metadata({"blend": "f0c6"})
    part = cut(rows, Piece(1, 2, "document"))
    assert part.schema.names == [*rows.schema.names[:5], "next_tokens", "segment_lengths", "microbatch"]
    assert part.schema.metadata == {b"blend": b"f0c6"}
    assert part.column("segment_lengths").equals(rows.column("segment_lengths"))
    assert part.schema.field("tokens").metadata[b"factory.chunk"] == b"document:1/2"
    lengths = without_tokens(rows, Piece(1, 2))
    assert lengths.schema.names == [name for name in rows.schema.names if name != "tokens"]
    assert lengths.schema.field("segment_lengths").metadata[b"factory.chunk"] == b"row:1/2"


def test_wrong_rows_are_refused_by_a_sentence() -> None:
    rows = packed([[4, 2]], 6)
    part = cut(rows, Piece(1, 2))
    lacking = rows.drop_columns(["tokens"])
    more = packed([[4, 3]], 6)  # 7 tokens of segments in a row of 6
    long = rows.set_column(4, rows.schema.field(4), pa.array([b"ab" * 7]))
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: Piece(2, 2), "no context parallel rank 2 of 2"),
        (lambda: Piece(-1, 2), "no context parallel rank -1 of 2"),
        (lambda: Piece(0, 0), "no context parallel rank 0 of 0"),
        (lambda: Piece(0, 2, "page"), "Unknown chunking `page`"),  # type: ignore[arg-type]
        (lambda: Piece.from_text("row"), "`row` is not a piece"),
        (lambda: cut(lacking, Piece()), "no column `tokens`"),
        (lambda: without_tokens(lacking, Piece()), "no column `tokens`"),
        (lambda: cut(pa.RecordBatch.from_pydict({"tokens": [b"ab"]}), Piece()), r"`factory\.token-bytes`"),
        (lambda: cut(part, Piece()), "cut before"),
        (lambda: cut(more, Piece(0, 2)), "The segments of row 0 have 7 tokens, but the row has 6"),
        (lambda: cut(long, Piece(0, 2)), r"7 tokens, more than the `factory\.sequence-length`"),
        (lambda: Chunk(rows), r"names no `factory\.chunk`"),
        (lambda: Chunk(lacking), r"names no `factory\.chunk`"),
        (lambda: Chunk(part).cu_seqlens_padded, "Only chunks of documents"),
        (lambda: Chunk(part).of_rows(0, 2), "no rows 0 to 2 in a chunk of 1 rows"),
    ]
    for refused, sentence in wrong:
        with pytest.raises(InvalidRequest, match=sentence):
            refused()


@pytest.mark.parametrize("chunking", ["row", "document"])
def test_a_piece_is_read_back_from_its_text(chunking: Chunking) -> None:
    assert Piece.from_text(str(Piece(3, 16, chunking))) == Piece(3, 16, chunking)
