"""One step for a trainer: padded tokens, and the borders of their documents.

    tokens [rows, L]   a b c d e 0 0 0 | f g h i j k l m    a short row is padded with zeros at its end
    document_ids       0 0 0 1 1 2 2 2 | 0 0 0 0 0 0 1 1    sections of a row: its documents, then padding
    position_ids       0 1 2 0 1 0 1 2 | 0 1 2 3 4 5 0 1    restart with every section
    cu_seqlens         0 3 5 8 14 16                        ends of the sections in tokens.reshape(-1)
    targets            b c - e - - - - | g h i j k - m -    the next token of the document; - is -100

Attention over `cu_seqlens`, or between equal `document_ids`, never crosses from one document to another. A
loss that ignores targets of -100 equals the loss of every document on its own. Each array is computed on
first use, for all steps of a block together.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy, binary_integers, binary_offsets
from blender.errors import InvalidRequest
from blender.ipc import from_ipc, to_ipc
from factory.lake.schemas.images import IMAGE_TOKEN
from factory.lake.schemas.packing import SEQUENCE_LENGTH, TOKEN_BYTES

IGNORED = -100  # the target that torch's losses leave out by default

SAMPLES = "samples"  # the column of rows that a loader joined from several samples: the origin of each


class Block:
    """The rows of a record batch as arrays."""

    def __init__(self, arrow: pa.RecordBatch) -> None:
        self.arrow = arrow

    @cached_property
    def source(self) -> npt.NDArray[np.int32]:
        """See `Batch.source`."""
        return self._origin("source")

    @cached_property
    def ordinal(self) -> npt.NDArray[np.int64]:
        """See `Batch.ordinal`."""
        return self._origin("ordinal")

    @cached_property
    def epoch(self) -> npt.NDArray[np.int64]:
        """See `Batch.epoch`."""
        return self._origin("epoch")

    @cached_property
    def sequence_length(self) -> int:
        """See `Batch.sequence_length`."""
        return self._token_property(SEQUENCE_LENGTH)

    @cached_property
    def token_bytes(self) -> int:
        """Bytes per token in `arrow`."""
        return self._token_property(TOKEN_BYTES)

    @cached_property
    def n_tokens(self) -> npt.NDArray[np.int64]:
        """See `Batch.n_tokens`."""
        width = self.token_bytes
        return np.diff(binary_offsets(self.arrow.column("tokens"))) // width

    @cached_property
    def tokens(self) -> npt.NDArray[np.int32]:
        """See `Batch.tokens`."""
        width, length = self.token_bytes, self.sequence_length
        shape = (self.arrow.num_rows, length)
        values = binary_integers(self.arrow.column("tokens"), width)
        if self._is_full:  # the usual case: a view, or one conversion
            return values.astype(np.int32, copy=False).reshape(shape)
        padded = np.zeros(shape, dtype=np.int32)
        padded[self._is_token] = values
        return padded

    @cached_property
    def document_ids(self) -> npt.NDArray[np.int32]:
        """See `Batch.document_ids`."""
        in_row = np.arange(len(self._lengths)) - np.repeat(self._row_starts[:-1], np.diff(self._row_starts))
        return np.repeat(in_row.astype(np.int32), self._lengths).reshape(-1, self.sequence_length)

    @cached_property
    def position_ids(self) -> npt.NDArray[np.int32]:
        """See `Batch.position_ids`."""
        positions = np.arange(self._borders[-1], dtype=self._borders.dtype)
        positions -= np.repeat(self._borders[:-1], self._lengths)
        return positions.astype(np.int32, copy=False).reshape(-1, self.sequence_length)

    @cached_property
    def places(self) -> npt.NDArray[np.int32]:
        """See `Batch.places`."""
        row = np.arange(self.sequence_length, dtype=np.int32)
        return np.tile(row, (self.arrow.num_rows, 1))

    @cached_property
    def targets(self) -> npt.NDArray[np.int64]:
        """See `Batch.targets`."""
        tokens = self.tokens.reshape(-1)
        following = np.empty(len(tokens), dtype=np.int64)
        following[:-1] = tokens[1:]
        following[self._borders[1:] - 1] = IGNORED  # the last token of each section
        targets = following.reshape(-1, self.sequence_length)
        if not self._is_full:
            targets[~self._is_token] = IGNORED
        if self.image_token is not None:
            targets[targets == self.image_token] = IGNORED
        return targets

    @cached_property
    def image_token(self) -> int | None:
        """The token of a picture; None for tables without pictures."""
        return self.number_of(IMAGE_TOKEN)

    @cached_property
    def image_mask(self) -> npt.NDArray[np.bool_]:
        """See `Batch.image_mask`."""
        if self.image_token is None:
            return np.zeros(self.tokens.shape, dtype=bool)
        return (self.tokens == self.image_token) & self._is_token

    def cu_seqlens(self, first: int, stop: int) -> npt.NDArray[np.int32]:
        """`Batch.cu_seqlens` of the rows from `first` to `stop`."""
        starts = self._row_starts
        borders = self._borders[starts[first] : starts[stop] + 1]
        return (borders - borders[0]).astype(np.int32, copy=False)

    @cached_property
    def _is_full(self) -> bool:
        """Whether no row has padding."""
        return bool((self.n_tokens == self.sequence_length).all())

    @cached_property
    def _is_token(self) -> npt.NDArray[np.bool_]:
        """The positions of the padded rows that hold a token."""
        return np.arange(self.sequence_length) < self.n_tokens[:, None]

    @cached_property
    def _borders(self) -> npt.NDArray[np.integer]:
        """0 and the end of each section in the padded rows laid end to end."""
        n, length = self.arrow.num_rows, self.sequence_length
        starts = np.arange(n) * length
        found = [starts, starts + self.n_tokens, np.array([n * length])]
        if "segment_lengths" in self.arrow.schema.names:
            column = self.arrow.column("segment_lengths")
            offsets = as_numpy(column.offsets).astype(np.int64)
            lengths = as_numpy(column.values)[offsets[0] : offsets[-1]].astype(np.int64)
            ends = np.concatenate([[0], np.cumsum(lengths)])
            row = np.repeat(np.arange(n), np.diff(offsets))
            before = ends[offsets - offsets[0]][:-1]  # tokens of earlier rows
            found.append(ends[1:] + (starts - before)[row])
        kind = np.int32 if n * length < 1 << 31 else np.int64  # half the work, except in huge steps
        return np.unique(np.concatenate(found)).astype(kind)

    @cached_property
    def _lengths(self) -> npt.NDArray[np.integer]:
        return np.diff(self._borders)

    @cached_property
    def _row_starts(self) -> npt.NDArray[np.int64]:
        """The index in `_borders` of each row's begin, and the end."""
        rows = np.arange(self.arrow.num_rows + 1) * self.sequence_length
        return np.searchsorted(self._borders, rows)

    def _origin(self, name: str) -> npt.NDArray[Any]:
        if name not in self.arrow.schema.names and SAMPLES in self.arrow.schema.names:
            raise InvalidRequest(
                f"These rows hold several samples each, so a row has no `{name}`. Use `samples`, which has "
                "it for each of them."
            )
        return as_numpy(self.arrow.column(name))

    def number_of(self, name: str) -> int | None:
        """A number in the metadata of `tokens`."""
        value = (self.arrow.schema.field("tokens").metadata or {}).get(name.encode())
        return None if value is None else int(value)

    def _token_property(self, name: str) -> int:
        if "tokens" not in self.arrow.schema.names:
            raise InvalidRequest(
                "This blend delivers no column `tokens`. Add it to the columns of a source, or use `arrow`."
            )
        number = self.number_of(name)
        if number is None:
            raise InvalidRequest(
                f"The tables of this blend do not say their `{name}`. Read the column from `arrow`."
            )
        return number


def samples_of(rows: pa.RecordBatch) -> dict[str, npt.NDArray[Any]]:
    """The samples of joined rows: `row` among them, and each field; raises InvalidRequest for other rows."""
    if SAMPLES not in rows.schema.names:
        raise InvalidRequest(
            "These rows hold one sample each. Use `source`, `ordinal` and `epoch`, or join samples by "
            "`row_tokens` of a loading spec."
        )
    lists = rows.column(SAMPLES)
    counts = np.diff(as_numpy(lists.offsets))
    values = lists.flatten()
    row = np.repeat(np.arange(rows.num_rows, dtype=np.int32), counts)
    return {"row": row, **{field.name: as_numpy(values.field(field.name)) for field in values.type}}


class Batch:
    """The rows of one step, or one rank's slice of it."""

    __slots__ = ("_block", "_first", "_stop", "next_offset", "offset")

    offset: int
    """The step."""
    next_offset: int
    """The next step: all the state that a reader needs to continue."""

    def __init__(self, offset: int, next_offset: int, arrow: pa.RecordBatch) -> None:
        self.offset, self.next_offset = offset, next_offset
        self._block, self._first, self._stop = Block(arrow), 0, arrow.num_rows

    @classmethod
    def of_block(cls, offset: int, next_offset: int, block: Block, first: int, stop: int) -> Batch:
        """The rows of `block` from `first` to `stop`."""
        batch = cls.__new__(cls)
        batch.offset, batch.next_offset = offset, next_offset
        batch._block, batch._first, batch._stop = block, first, stop
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        rows = b"".join(to_ipc(self.arrow))  # not the whole block
        return _unpickled, (self.offset, self.next_offset, rows)

    def __len__(self) -> int:
        return self._stop - self._first

    @property
    def arrow(self) -> pa.RecordBatch:
        """The rows as received: provenance columns, then the delivered columns."""
        return self._block.arrow.slice(self._first, len(self))

    @property
    def source(self) -> npt.NDArray[np.int32]:
        """The number of each row's source, in the order of the blend's sources; shape [rows]."""
        return self._block.source[self._first : self._stop]

    @property
    def ordinal(self) -> npt.NDArray[np.int64]:
        """Each row's ordinal in its table; shape [rows]."""
        return self._block.ordinal[self._first : self._stop]

    @property
    def epoch(self) -> npt.NDArray[np.int64]:
        """Each row's epoch: earlier full passes over its source; shape [rows]."""
        return self._block.epoch[self._first : self._stop]

    @property
    def sequence_length(self) -> int:
        """Tokens in a full row."""
        return self._block.sequence_length

    @property
    def n_tokens(self) -> npt.NDArray[np.int64]:
        """Tokens in each row without padding; shape [rows]."""
        return self._block.n_tokens[self._first : self._stop]

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Token ids, padded with zeros; shape [rows, sequence_length].

        Four-byte tokens in full rows are a view; others are copied once.
        """
        return self._block.tokens[self._first : self._stop]

    @property
    def document_ids(self) -> npt.NDArray[np.int32]:
        """The section of its row that each token belongs to; shape [rows, sequence_length]."""
        return self._block.document_ids[self._first : self._stop]

    @property
    def position_ids(self) -> npt.NDArray[np.int32]:
        """Each token's position in its section; shape [rows, sequence_length]."""
        return self._block.position_ids[self._first : self._stop]

    @property
    def places(self) -> npt.NDArray[np.int32]:
        """Each token's place in its row, which orders the pieces of a row; shape [rows, sequence_length]."""
        return self._block.places[self._first : self._stop]

    @property
    def samples(self) -> dict[str, npt.NDArray[Any]]:
        """The samples of rows that a loader joined: `row`, `source`, `ordinal`, `epoch` and `length` of each.

        Raises InvalidRequest for rows of one sample.
        """
        return samples_of(self.arrow)

    @property
    def image_mask(self) -> npt.NDArray[np.bool_]:
        """The tokens of pictures, as a mask; shape [rows, sequence_length]."""
        return self._block.image_mask[self._first : self._stop]

    @property
    def cu_seqlens(self) -> npt.NDArray[np.int32]:
        """Ends of all sections in `tokens.reshape(-1)`, with a leading 0; shape [sections + 1]."""
        return self._block.cu_seqlens(self._first, self._stop)

    @property
    def targets(self) -> npt.NDArray[np.int64]:
        """The next token of the document, or -100, also before a picture; shape [rows, sequence_length]."""
        return self._block.targets[self._first : self._stop]


def _unpickled(offset: int, next_offset: int, rows: bytes) -> Batch:
    return Batch(offset, next_offset, from_ipc(rows))
