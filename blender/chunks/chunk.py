"""A chunk for a trainer: the arrays of `blender.batch.Batch`, for the tokens of one piece of every row."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import binary_integers
from blender.batch import IGNORED, Block, samples_of
from blender.chunks.cutting import NEXT_TOKENS, SEGMENT_LENGTHS
from blender.chunks.layout import Documents, Layout, ends_of, layout_of, padded_length
from blender.chunks.piece import CHUNK, Piece
from blender.errors import InvalidRequest
from blender.ipc import from_ipc, to_ipc
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES

Kind = TypeVar("Kind", bound=np.generic)


class ChunkBlock:
    """The rows of a record batch that was cut, as arrays. Raises InvalidRequest for other rows."""

    def __init__(self, arrow: pa.RecordBatch) -> None:
        self.arrow = arrow
        self.provenance = Block(arrow)
        schema = arrow.schema
        self.has_tokens = "tokens" in schema.names
        name = "tokens" if self.has_tokens else SEGMENT_LENGTHS
        metadata = (schema.field(name).metadata if name in schema.names else None) or {}
        if CHUNK.encode() not in metadata:
            raise InvalidRequest(
                f"The metadata of these rows names no `{CHUNK}`. Cut them with `blender.chunks.cut`."
            )
        self.piece = Piece.from_text(metadata[CHUNK.encode()].decode())
        self.sequence_length = int(metadata[SEQUENCE_LENGTH.encode()])
        self.token_bytes = int(metadata[TOKEN_BYTES.encode()])

    @cached_property
    def documents(self) -> Documents:
        """The documents of the whole rows."""
        return Documents.of_column(self.arrow.column(SEGMENT_LENGTHS))

    @cached_property
    def layout(self) -> Layout:
        """Where the tokens of the chunk lie."""
        return layout_of(self.documents, self.sequence_length, self.piece)

    @cached_property
    def tokens(self) -> npt.NDArray[np.int32]:
        """See `Chunk.tokens`."""
        values = self._integers("tokens")
        if self.layout.is_full:
            return self._shaped(values.astype(np.int32, copy=False))
        padded = np.zeros(self.layout.size, dtype=np.int32)
        padded[self._is_token] = values
        return self._shaped(padded)

    @cached_property
    def targets(self) -> npt.NDArray[np.int64]:
        """See `Chunk.targets`."""
        layout, tokens = self.layout, self.tokens.reshape(-1)
        targets = np.empty(len(tokens), dtype=np.int64)
        targets[:-1] = tokens[1:]
        if self.piece.of > 1:  # the run of a single rank ends with a document or padding
            targets[layout.run_stops - 1] = self._integers(NEXT_TOKENS)
        targets[(layout.begins + layout.n_tokens)[layout.is_end] - 1] = IGNORED
        if not layout.is_full:
            targets[~self._is_token] = IGNORED
        if self.provenance.image_token is not None:
            targets[targets == self.provenance.image_token] = IGNORED
        return self._shaped(targets)

    @cached_property
    def image_mask(self) -> npt.NDArray[np.bool_]:
        """See `Chunk.image_mask`."""
        token = self.provenance.image_token if self.has_tokens else None
        if token is None:
            return np.zeros(self.tokens.shape, dtype=bool)
        return (self.tokens == token) & self._shaped(self._is_token)

    @cached_property
    def position_ids(self) -> npt.NDArray[np.int32]:
        """See `Chunk.position_ids`."""
        return self._shaped(self.layout.counted_from(self.layout.positions))

    @cached_property
    def document_ids(self) -> npt.NDArray[np.int32]:
        """See `Chunk.document_ids`."""
        return self._shaped(np.repeat(self.layout.numbers.astype(np.int32), self.layout.lengths))

    @cached_property
    def places(self) -> npt.NDArray[np.int32]:
        """See `Chunk.places`."""
        if self.piece.chunking == "row":
            return self._shaped(self.layout.counted_from(self.layout.places))
        starts = np.repeat(self.padded_ends[:-1], len(self.piece.parts))
        return self.layout.counted_from(starts + self.layout.positions)

    @cached_property
    def padded_ends(self) -> npt.NDArray[np.int64]:
        """0 and the end of each document, padded for the ranks that divide it; shape [documents + 1]."""
        n_parts = self.piece.n_parts
        return ends_of(-(-self.documents.lengths // n_parts) * n_parts)

    def cu_seqlens(self, first: int, stop: int) -> npt.NDArray[np.int32]:
        """`Chunk.cu_seqlens` of the rows from `first` to `stop`."""
        documents = self.documents
        begin, end = documents.row_starts[first], documents.row_starts[stop]
        if self.piece.chunking == "document":
            return ends_of(documents.lengths[begin:end]).astype(np.int32)
        length = padded_length(self.sequence_length, self.piece)
        ends = documents.rows * length + documents.starts + documents.lengths
        rows = np.arange(first, stop + 1) * length  # a short row ends with its padding
        return (np.union1d(rows, ends[begin:end]) - first * length).astype(np.int32)

    def cu_seqlens_padded(self, first: int, stop: int) -> npt.NDArray[np.int32]:
        """`Chunk.cu_seqlens_padded` of the rows from `first` to `stop`."""
        if self.piece.chunking == "row":
            raise InvalidRequest(
                "Only chunks of documents have `cu_seqlens_padded`. Set `chunking` to `document`, "
                "or mask by `document_ids` and `places`."
            )
        begin, end = self.documents.row_starts[first], self.documents.row_starts[stop]
        return (self.padded_ends[begin : end + 1] - self.padded_ends[begin]).astype(np.int32)

    def of_rows(self, array: npt.NDArray[Kind], first: int, stop: int) -> npt.NDArray[Kind]:
        """The part of an array of tokens that belongs to the rows from `first` to `stop`."""
        if self.piece.chunking == "row":
            return array[first:stop]
        return array[self.layout.row_begins[first] : self.layout.row_begins[stop]]

    @cached_property
    def _is_token(self) -> npt.NDArray[np.bool_]:
        return self.layout.is_token()

    def _shaped(self, array: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
        if self.piece.chunking == "document":
            return array
        return array.reshape(
            self.arrow.num_rows, padded_length(self.sequence_length, self.piece) // self.piece.of
        )

    def _integers(self, name: str) -> npt.NDArray[Any]:
        if not self.has_tokens:
            raise InvalidRequest(
                "These rows carry lengths alone, for a pipeline stage between the first and the last. "
                "Use `position_ids`, `document_ids` or `cu_seqlens`, or fetch the rows with their tokens."
            )
        return binary_integers(self.arrow.column(name), self.token_bytes)


class Chunk:
    """The tokens of received rows that one context parallel rank computes.

    Arrays of tokens have the shape [rows, L' / ranks] if ranks divide rows, where L' is `sequence_length`
    padded for them, and the shape [n] if they divide documents. Each is computed on first use, for all
    microbatches of the received rows together.
    """

    __slots__ = ("_block", "_first", "_stop")

    def __init__(self, arrow: pa.RecordBatch) -> None:
        self._block, self._first, self._stop = ChunkBlock(arrow), 0, arrow.num_rows

    def of_rows(self, first: int, stop: int) -> Chunk:
        """The rows from `first` to `stop` as a chunk, such as a microbatch, over the same memory."""
        if not 0 <= first <= stop <= len(self):
            raise InvalidRequest(f"There are no rows {first} to {stop} in a chunk of {len(self)} rows.")
        chunk = Chunk.__new__(Chunk)
        chunk._block, chunk._first, chunk._stop = self._block, self._first + first, self._first + stop
        return chunk

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (b"".join(to_ipc(self.arrow)),)  # not the whole block

    def __len__(self) -> int:
        return self._stop - self._first

    @property
    def arrow(self) -> pa.RecordBatch:
        """The rows as received."""
        return self._block.arrow.slice(self._first, len(self))

    @property
    def piece(self) -> Piece:
        """The piece of the rows."""
        return self._block.piece

    @property
    def source(self) -> npt.NDArray[np.int32]:
        """The number of each row's source, in the order of the blend's sources; shape [rows]."""
        return self._block.provenance.source[self._first : self._stop]

    @property
    def ordinal(self) -> npt.NDArray[np.int64]:
        """Each row's ordinal in its table; shape [rows]."""
        return self._block.provenance.ordinal[self._first : self._stop]

    @property
    def epoch(self) -> npt.NDArray[np.int64]:
        """Each row's epoch: earlier full passes over its source; shape [rows]."""
        return self._block.provenance.epoch[self._first : self._stop]

    @property
    def sequence_length(self) -> int:
        """Tokens in a full row of the table, for all ranks."""
        return self._block.sequence_length

    @property
    def n_tokens(self) -> npt.NDArray[np.int64]:
        """Tokens in each whole row, for all ranks, without padding; shape [rows]."""
        return self._block.documents.n_tokens[self._first : self._stop]

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Token ids, and zeros for padding. Raises InvalidRequest if the rows carry lengths alone."""
        return self._of_rows(self._block.tokens)

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        """The next token of the document, or -100. Raises InvalidRequest if the rows carry lengths alone."""
        return self._of_rows(self._block.targets)

    @property
    def image_mask(self) -> npt.NDArray[np.bool_]:
        """Where tokens stand for pictures. Raises InvalidRequest if the rows carry lengths alone."""
        return self._of_rows(self._block.image_mask)

    @property
    def samples(self) -> dict[str, npt.NDArray[Any]]:
        """As `Batch.samples`, of whole rows."""
        return samples_of(self.arrow)

    @property
    def position_ids(self) -> npt.NDArray[np.int32]:
        """Each token's position in its document; the padding of a row counts as a document of its own."""
        return self._of_rows(self._block.position_ids)

    @property
    def document_ids(self) -> npt.NDArray[np.int32]:
        """The number in its row of each token's document; the padding of a row counts as the last one."""
        return self._of_rows(self._block.document_ids)

    @property
    def places(self) -> npt.NDArray[np.int32]:
        """Each token's place in what all ranks compute, which orders gathered keys.

        The place in its padded row, if ranks divide rows. If they divide documents, the place in all padded
        documents laid end to end, as `thd_get_partitioned_indices` of TransformerEngine names it.
        """
        places = self._of_rows(self._block.places)
        if self._first == 0 or self.piece.chunking == "row":
            return places
        begin = self._block.documents.row_starts[self._first]
        return places - np.int32(self._block.padded_ends[begin])

    @property
    def cu_seqlens(self) -> npt.NDArray[np.int32]:
        """Ends of all documents of all ranks, with a leading 0.

        In padded rows laid end to end, where padding counts as a document, if ranks divide rows. If they
        divide documents, without padding.
        """
        return self._block.cu_seqlens(self._first, self._stop)

    @property
    def cu_seqlens_padded(self) -> npt.NDArray[np.int32]:
        """Ends of all padded documents of all ranks, with a leading 0. Raises InvalidRequest for rows."""
        return self._block.cu_seqlens_padded(self._first, self._stop)

    def _of_rows(self, array: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
        return self._block.of_rows(array, self._first, self._stop)


def _unpickled(rows: bytes) -> Chunk:
    return Chunk(from_ipc(rows))
