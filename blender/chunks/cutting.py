"""Rows cut for the wire: the tokens of one piece, or lengths alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow, as_binary, binary_integers, binary_offsets
from blender.batch import Block
from blender.chunks.layout import Documents, Integers, ends_of, layout_of, list_values, padded_length
from blender.chunks.piece import CHUNK, Piece
from blender.errors import InvalidRequest
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES

NEXT_TOKENS = "next_tokens"
SEGMENT_LENGTHS = "segment_lengths"


def is_cut(rows: pa.RecordBatch) -> bool:
    """Whether the rows are a piece, or lengths alone, and no whole rows."""
    return any(CHUNK.encode() in (field.metadata or {}) for field in rows.schema)


def cut(rows: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
    """The rows with the tokens of `piece` alone, and the token after each of its runs.

    Padding is left out. The column `next_tokens` holds the token after each run, as wide as `tokens`, and 0
    where the row or document ends before it; a single rank needs none. The lengths in `segment_lengths`
    remain the whole rows', and cover all their tokens: rows without segments get one. All other columns stay.
    The metadata of `tokens` names the piece. Raises InvalidRequest for rows that are not packed rows, or were
    cut before.
    """
    block = uncut_block(rows)
    rows = with_all_lengths(rows, block)
    column, segments, width = rows.column("tokens"), rows.column(SEGMENT_LENGTHS), block.token_bytes
    tokens, following = column, as_binary(np.empty(0, "<u2"), np.zeros(rows.num_rows + 1, dtype=np.int64))
    if piece.of > 1:
        values = binary_integers(column, width)
        if piece.chunking == "row" and len(values) == rows.num_rows * block.sequence_length:
            tokens, following = _cut_full_rows(values.reshape(rows.num_rows, block.sequence_length), piece)
        else:
            begins = (binary_offsets(column) - binary_offsets(column)[0]) // width
            tokens, following = _cut_ragged_rows(values, begins, segments, block.sequence_length, piece)
    field = rows.schema.field("tokens")
    field = field.with_metadata({**field.metadata, CHUNK: str(piece)})
    names = list(rows.schema.names)
    rows = rows.set_column(names.index("tokens"), field, tokens)
    return rows.add_column(names.index("tokens") + 1, pa.field(NEXT_TOKENS, pa.binary()), following)


def without_tokens(rows: pa.RecordBatch, piece: Piece) -> pa.RecordBatch:
    """The rows with lengths alone, for a pipeline stage between the first and the last.

    `segment_lengths` covers all tokens of the rows, and its metadata names the piece. Raises InvalidRequest
    as `cut` does.
    """
    block = uncut_block(rows)
    metadata = {SEQUENCE_LENGTH: str(block.sequence_length), TOKEN_BYTES: str(block.token_bytes)}
    return with_all_lengths(rows, block, {**metadata, CHUNK: str(piece)}).drop_columns(["tokens"])


def uncut_block(rows: pa.RecordBatch) -> Block:
    """Whole packed rows as arrays. Raises InvalidRequest for other rows, and for rows that were cut."""
    if NEXT_TOKENS in rows.schema.names:
        raise InvalidRequest(
            f"These rows have a column `{NEXT_TOKENS}`: they were cut before, or a source delivers it. "
            "Cut rows once, and rename that column."
        )
    block = Block(rows)
    if rows.num_rows and block.n_tokens.max() > block.sequence_length:
        raise InvalidRequest(
            f"A row has {block.n_tokens.max()} tokens, more than the `{SEQUENCE_LENGTH}` of its table, "
            f"{block.sequence_length}. Pack the table again."
        )
    return block


def with_all_lengths(
    rows: pa.RecordBatch, block: Block, metadata: Mapping[str, str] | None = None
) -> pa.RecordBatch:
    """The rows of a block with `segment_lengths` that cover all their tokens.

    The tokens of a row after its segments count as one more segment. `metadata` is added to the column's.
    Raises InvalidRequest for a row with more tokens in its segments than in itself.
    """
    segments = _segment_lengths(rows, block)
    names = rows.schema.names
    if SEGMENT_LENGTHS not in names:
        return rows.append_column(pa.field(SEGMENT_LENGTHS, segments.type, metadata=metadata or {}), segments)
    field = rows.schema.field(SEGMENT_LENGTHS)
    field = field.with_metadata({**(field.metadata or {}), **(metadata or {})})
    return rows.set_column(names.index(SEGMENT_LENGTHS), field, segments)


def _cut_full_rows(tokens: npt.NDArray[Any], piece: Piece) -> tuple[pa.Array, pa.Array]:
    """The pieces of rows without padding, by two copies."""
    n_rows, length = tokens.shape
    width = padded_length(length, piece) // piece.n_parts
    cuts = np.concatenate([tokens[:, part * width : (part + 1) * width] for part in piece.parts], axis=1)
    following = np.zeros((n_rows, len(piece.parts)), dtype=tokens.dtype)
    for run, part in enumerate(piece.parts):
        if (part + 1) * width < length:
            following[:, run] = tokens[:, (part + 1) * width]
    rows = np.arange(n_rows + 1)
    return as_binary(cuts, rows * cuts.shape[1]), as_binary(following, rows * len(piece.parts))


def _cut_ragged_rows(
    tokens: npt.NDArray[Any], begins: Integers, segments: pa.ListArray, length: int, piece: Piece
) -> tuple[pa.Array, pa.Array]:
    """The pieces of rows that begin at `begins` in `tokens`, by an index of every token."""
    layout = layout_of(Documents.of_column(segments), length, piece)
    ends = ends_of(layout.n_tokens)
    moves = (begins[layout.rows] + layout.places - ends[:-1]).astype(np.int32)
    index = np.arange(ends[-1], dtype=np.int32)
    index += np.repeat(moves, layout.n_tokens)
    following = np.zeros(len(layout.run_rows), dtype=tokens.dtype)
    has_next = layout.next_places >= 0
    following[has_next] = tokens[(begins[layout.run_rows] + layout.next_places)[has_next]]
    rows = np.arange(len(begins))
    return (
        as_binary(tokens.take(index), ends[np.searchsorted(layout.rows, rows)]),
        as_binary(following, np.searchsorted(layout.run_rows, rows)),
    )


def _segment_lengths(rows: pa.RecordBatch, block: Block) -> pa.ListArray:
    """Lengths for all tokens: those in the rows, and one for the tokens of a row after its segments."""
    n_tokens = block.n_tokens
    if SEGMENT_LENGTHS not in rows.schema.names:
        return _lists(np.arange(rows.num_rows + 1), n_tokens, pa.list_(pa.int32()))
    column = rows.column(SEGMENT_LENGTHS)
    offsets, lengths = list_values(column)
    rest = n_tokens - np.diff(ends_of(lengths)[offsets])
    if (rest < 0).any():
        row = int(np.argmax(rest < 0))
        raise InvalidRequest(
            f"The segments of row {row} have {n_tokens[row] - rest[row]} tokens, but the row has "
            f"{n_tokens[row]}. Pack the table again."
        )
    if not rest.any():
        return column
    lengths = np.insert(lengths, offsets[1:][rest > 0], rest[rest > 0])
    return _lists(offsets + ends_of(rest > 0), lengths, column.type)


def _lists(offsets: Integers, values: Integers, kind: pa.ListType) -> pa.ListArray:
    parts = (as_arrow(offsets.astype(np.int32)), as_arrow(values.astype(np.int32)))
    return pa.ListArray.from_arrays(*parts, type=kind)
