"""Packed rows of Blender and the loader as durable batches, at 2 bytes a token.

    slices = packed_slices([rows_of_dp_0, rows_of_dp_1], Mesh(dp=2, cp=2))      # of record batches
    packed_rows(step)                               # Chunk: targets, positions and documents of this rank
    packed_rows(step_of_a_mesh_without_cp)          # Batch, as `open_blend` gives it

A batch has three columns:

    tokens        [rows, L], or with cp > 1 padded and cut along L; 0 for padding
    next_tokens   cp > 1: [rows, 2 cp], the token after each chunk of a row, cut with the chunks; 0 for none
    row_facts     an Arrow stream of the other columns, with the number of tokens as `tokens`

Where cp ranks divide documents, chunk c of `tokens` has the c-th part of every document, shape [1, W], and
`next_tokens` has [1, documents]. Targets, positions and documents are computed at the trainer. Padding and
neighbors depend on the cp, so ranks of another cp may need all chunks (`row_runs`), and cut the rows again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow, as_binary, as_numpy, binary_integers
from blender.batch import Batch, Block
from blender.chunks import Chunk, Chunking, Piece, cut, is_cut
from blender.chunks.chunk import ChunkBlock
from blender.chunks.cutting import NEXT_TOKENS, SEGMENT_LENGTHS, uncut_block, with_all_lengths
from blender.chunks.layout import Documents, Layout, ends_of, layout_of, padded_length
from blender.chunks.piece import CHUNK
from blender.errors import InvalidRequest
from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.columns import ROW_FACTS, Array
from blender.global_batches.format.cut import chunks_of
from blender.global_batches.format.slices import Slices
from blender.global_batches.namespace import Namespace
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.row_runs import TOKENS
from blender.ipc import from_ipc, to_ipc
from blender.spec.mesh import Mesh
from factory.lake.schemas.packing import SEQUENCE_LENGTH

FACTS = ROW_FACTS


def packed_slices(rows: Sequence[pa.RecordBatch], mesh: Mesh, chunking: Chunking = "row") -> Slices:
    """The rows of each dp index as a batch; cp ranks divide rows or documents, by `chunking`.

    Equal rows give equal bytes, read in blocks of any size. Raises InvalidBatch for another number of
    dp indexes, and for rows that are not packed rows or were cut before.
    """
    if len(rows) != mesh.dp:
        raise InvalidBatch(
            f"The rows of {len(rows)} dp indexes were given for the mesh {mesh}. Give those of {mesh.dp}."
        )
    try:
        if any(map(is_cut, rows)):
            raise InvalidRequest("They were cut for a rank. Give whole rows")
        if mesh.cp == 1:
            return Slices(tuple(_whole(part, chunking) for part in rows), mesh.dp)
        arrays = [chunk for part in rows for chunk in _chunks(part, mesh.cp, chunking)]
    except InvalidRequest as error:
        raise InvalidBatch(f"The rows of a step cannot be stored: {error}") from error
    return Slices(tuple(arrays), mesh.dp, 2 * mesh.cp, frozenset((TOKENS, NEXT_TOKENS)))


def require_layout(namespace: Namespace) -> None:
    """Raise InvalidBatch unless packed rows can be cut for a namespace."""
    if namespace.cp > 1 and namespace.layout != "zigzag":
        raise InvalidBatch(
            f"The namespace has the layout {namespace.layout}, and packed rows are cut in zigzag, so that "
            "causal attention costs all cp ranks the same. Create a namespace with the layout zigzag."
        )


def is_packed_rows(step: GlobalBatchSlice) -> bool:
    """Whether a step was stored by `packed_slices`."""
    return FACTS in step.arrays


def packed_rows(step: GlobalBatchSlice) -> Batch | Chunk:
    """The rows of a step as its rank reads them: a Batch, or a Chunk where ranks divide rows or documents."""
    if not is_packed_rows(step):
        raise InvalidRequest(
            f"Step {step.offset:,} has no column `{FACTS}`: no blend was stored. Use its `arrays`."
        )
    facts = from_ipc(step.arrays[FACTS].data)
    metadata = dict(facts.schema.field(TOKENS).metadata)
    whole = Piece.from_text(metadata.pop(CHUNK.encode()).decode())
    piece = Piece(step.place.cp, step.recut or whole.of, whole.chunking)
    if step.has_all_chunks or whole.of == 1:
        rows = _with_tokens(facts, _whole_again(step.arrays[TOKENS], facts, whole), metadata)
        if piece == Piece():
            return Batch(step.batch_step, step.batch_step + 1, rows)
        return Chunk(cut(rows, piece))
    length = int(metadata[SEQUENCE_LENGTH.encode()])
    layout = layout_of(Documents.of_column(facts.column(SEGMENT_LENGTHS)), length, piece)
    rows = _with_tokens(facts, _of_rows(step, layout, piece), {**metadata, CHUNK.encode(): str(piece)})
    after = rows.schema.names.index(TOKENS) + 1
    following = _following_of_rows(step, layout, piece)
    return Chunk(rows.add_column(after, pa.field(NEXT_TOKENS, pa.binary()), following))


def _whole(rows: pa.RecordBatch, chunking: Chunking) -> dict[str, Array]:
    """The slice of a dp index for a mesh without context parallelism."""
    block = uncut_block(rows)
    tokens = _padded(rows, block, block.sequence_length)
    return {TOKENS: tokens, FACTS: _facts(rows, block.n_tokens, Piece(0, 1, chunking))}


def _chunks(rows: pa.RecordBatch, cp: int, chunking: Chunking) -> list[dict[str, Array]]:
    """The slices of a dp index, in the order of the sequence."""
    block = uncut_block(rows)
    facts = _facts(with_all_lengths(rows, block), block.n_tokens, Piece(0, cp, chunking))
    parts = _parts_of_rows(rows, block, cp) if chunking == "row" else _parts_of_documents(rows, cp)
    return [part | ({FACTS: facts} if chunk % 2 == 0 else {}) for chunk, part in enumerate(parts)]


def _parts_of_rows(rows: pa.RecordBatch, block: Block, cp: int) -> list[dict[str, Array]]:
    """The tokens of each chunk where ranks divide rows, and the token after it in each row."""
    length = padded_length(block.sequence_length, Piece(0, cp))
    tokens = _padded(rows, block, length)
    parts = np.split(tokens, 2 * cp, axis=1)
    following = [*(part[:, :1] for part in parts[1:]), np.zeros((len(tokens), 1), tokens.dtype)]
    return [{TOKENS: part, NEXT_TOKENS: after} for part, after in zip(parts, following, strict=True)]


def _parts_of_documents(rows: pa.RecordBatch, cp: int) -> list[dict[str, Array]]:
    """The tokens of each chunk where ranks divide documents, and the token after it in each document."""
    parts: list[dict[str, Array]] = [{} for _ in range(2 * cp)]
    for rank in range(cp):
        piece = cut(rows, Piece(rank, cp, "document"))
        block = ChunkBlock(piece)
        width = block.token_bytes
        tokens = block.tokens.astype(f"<u{width}" if width < 4 else "<i4")
        following = binary_integers(piece.column(NEXT_TOKENS), width).reshape(-1, 2)
        for half, chunk in enumerate(chunks_of(rank, cp, "zigzag")):
            is_of_half = np.arange(len(block.layout.lengths)) % 2 == half
            parts[chunk] = {
                TOKENS: tokens[np.repeat(is_of_half, block.layout.lengths)][None],
                NEXT_TOKENS: following[:, half][None],
            }
    return parts


def _padded(rows: pa.RecordBatch, block: Block, length: int) -> Array:
    """The tokens of whole rows, padded with zeros: a view of full ones."""
    tokens = binary_integers(rows.column(TOKENS), block.token_bytes)
    shape = rows.num_rows, length
    if tokens.size == shape[0] * shape[1]:
        return tokens.reshape(shape)
    padded = np.zeros(shape, tokens.dtype)
    padded[np.arange(length) < block.n_tokens[:, None]] = tokens
    return padded


def _facts(rows: pa.RecordBatch, n_tokens: npt.NDArray[np.int64], piece: Piece) -> Array:
    """The bytes of all columns, with the number of tokens in place of the tokens."""
    index = rows.schema.names.index(TOKENS)
    metadata = {**rows.schema.field(index).metadata, CHUNK: str(piece)}
    field = pa.field(TOKENS, pa.int32(), metadata=metadata)
    facts = rows.set_column(index, field, as_arrow(n_tokens.astype(np.int32)))
    own = facts.take(as_arrow(np.arange(facts.num_rows)))  # buffers of a block would show in the bytes
    return np.frombuffer(b"".join(to_ipc(own)), dtype=np.uint8)


def _with_tokens(facts: pa.RecordBatch, tokens: pa.Array, metadata: dict[bytes, object]) -> pa.RecordBatch:
    return facts.set_column(
        facts.schema.names.index(TOKENS), pa.field(TOKENS, pa.binary(), metadata=metadata), tokens
    )


def _unpadded(tokens: Array, n_tokens: npt.NDArray[np.int32]) -> pa.Array:
    """The tokens of whole rows: a view of full ones."""
    values = tokens.reshape(-1)
    if (n_tokens != tokens.shape[1]).any():
        values = tokens[np.arange(tokens.shape[1]) < n_tokens[:, None]]
    return as_binary(values, ends_of(n_tokens))


def _whole_again(chunks: Array, facts: pa.RecordBatch, piece: Piece) -> pa.Array:
    """The tokens of whole rows, from all chunks that ranks like `piece` have of them."""
    n_tokens = as_numpy(facts.column(TOKENS))
    if piece.of == 1 or piece.chunking == "row":
        return _unpadded(chunks, n_tokens)
    lengths = Documents.of_column(facts.column(SEGMENT_LENGTHS)).lengths
    widths = -(-lengths // piece.n_parts)  # of the parts of a document, which follow each other in a chunk
    places = np.arange(lengths.sum()) - np.repeat(ends_of(lengths)[:-1], lengths)
    chunk, place = np.divmod(places, np.repeat(widths, lengths))
    index = chunk * widths.sum() + np.repeat(ends_of(widths)[:-1], lengths) + place
    return as_binary(chunks.reshape(-1)[index], ends_of(n_tokens))


def _of_rows(step: GlobalBatchSlice, layout: Layout, piece: Piece) -> pa.Array:
    """The tokens of a piece, as `blender.chunks.cut` leaves them."""
    values = step.arrays[TOKENS].reshape(-1)
    if piece.chunking == "document":  # the first parts of all documents, then their last ones
        values = values[_interleaved(layout.lengths)]
    if not layout.is_full:
        values = values[layout.is_token()]
    n_rows = len(layout.row_begins) - 1
    return as_binary(values, ends_of(np.bincount(layout.rows, layout.n_tokens, n_rows).astype(np.int64)))


def _following_of_rows(step: GlobalBatchSlice, layout: Layout, piece: Piece) -> pa.Array:
    values = step.arrays[NEXT_TOKENS]
    if piece.chunking == "document":
        values = values.reshape(2, -1).T
    n_rows = len(layout.row_begins) - 1
    return as_binary(values.reshape(-1), ends_of(np.bincount(layout.run_rows, minlength=n_rows)))


def _interleaved(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The index of each token of runs in turn, in an array that has all even runs before the odd ones."""
    starts = np.concatenate([ends_of(lengths[0::2])[:-1], ends_of(lengths[1::2])[:-1] + lengths[0::2].sum()])
    starts = starts.reshape(2, -1).T.reshape(-1)
    return np.arange(lengths.sum()) + np.repeat(starts - ends_of(lengths)[:-1], lengths)
