"""One step as a trainer takes it: padded tokens, and where its documents begin and end.

    tokens [rows, L]   a a a b b 0 0 0 | c c c c c c d d    a short row is padded with zeros at its end
    position_ids       0 1 2 0 1 0 1 2 | 0 1 2 3 4 5 0 1    restart with every document and with the padding
    cu_seqlens         0 3 5 8 14 16                        ends of these stretches in tokens.reshape(-1)

So attention over `cu_seqlens` never crosses from one document to another. Every array is computed when it
is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.errors import InvalidRequest
from factory.lake.schemas import SEQUENCE_LENGTH, TOKEN_BYTES


@dataclass(frozen=True, eq=False)
class Batch:
    """The rows of one step, or of one rank's share of it."""

    offset: int
    """The step."""
    next_offset: int
    """The step after it: all the state a reader needs to go on."""
    arrow: pa.RecordBatch
    """The rows as they came: provenance columns, then the columns asked for."""

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    @cached_property
    def source(self) -> npt.NDArray[np.int32]:
        """The number of each row's source, in the order of the blend's sources; shape [rows]."""
        return as_numpy(self.arrow.column("source"))

    @cached_property
    def ordinal(self) -> npt.NDArray[np.int64]:
        """Each row's ordinal in its table; shape [rows]."""
        return as_numpy(self.arrow.column("ordinal"))

    @cached_property
    def epoch(self) -> npt.NDArray[np.int64]:
        """How often the row's source had been read through before; shape [rows]."""
        return as_numpy(self.arrow.column("epoch"))

    @cached_property
    def sequence_length(self) -> int:
        """Tokens a full row holds."""
        return self._token_property(SEQUENCE_LENGTH)

    @cached_property
    def n_tokens(self) -> npt.NDArray[np.int64]:
        """Tokens in each row, without padding; shape [rows]."""
        starts, ends, _ = self._token_bytes
        return (ends - starts) // self._token_property(TOKEN_BYTES)

    @cached_property
    def tokens(self) -> npt.NDArray[np.int32]:
        """Token ids, padded with zeros; shape [rows, sequence_length]."""
        width = self._token_property(TOKEN_BYTES)
        starts, ends, data = self._token_bytes
        shape = (len(self), self.sequence_length)
        kind = f"<u{width}"
        if len(self) and (ends - starts == self.sequence_length * width).all():  # the usual case: one copy
            values = np.frombuffer(data, kind, count=shape[0] * shape[1], offset=int(starts[0]))
            return values.astype(np.int32).reshape(shape)
        padded = np.zeros(shape, dtype=np.int32)
        for row, (start, count) in enumerate(zip(starts, self.n_tokens, strict=True)):
            padded[row, :count] = np.frombuffer(data, kind, count=int(count), offset=int(start))
        return padded

    @cached_property
    def cu_seqlens(self) -> npt.NDArray[np.int32]:
        """Ends of all stretches in `tokens.reshape(-1)`, with a leading 0; shape [stretches + 1]."""
        ends = self._ends
        return np.concatenate([[0], ends]).astype(np.int32)

    @cached_property
    def position_ids(self) -> npt.NDArray[np.int32]:
        """Each token's place in its stretch; shape [rows, sequence_length]."""
        total = len(self) * self.sequence_length
        starts = self.cu_seqlens[:-1]
        lengths = np.diff(self.cu_seqlens)
        places = np.arange(total, dtype=np.int32) - np.repeat(starts, lengths)
        return places.reshape(len(self), self.sequence_length)

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """Where each document's stretch ends, and each row's padding, in the padded rows laid end to end."""
        length = self.sequence_length
        last = (np.arange(len(self)) + 1) * length
        rows = np.arange(len(self)) * length + self.n_tokens
        if "segment_lengths" not in self.arrow.schema.names:
            inside = rows
        else:
            column = self.arrow.column("segment_lengths")
            offsets = as_numpy(column.offsets).astype(np.int64)
            lengths = as_numpy(column.values)[offsets[0] : offsets[-1]].astype(np.int64)
            row = np.repeat(np.arange(len(self)), np.diff(offsets))
            ends = np.cumsum(lengths)
            before = np.concatenate([[0], ends])[offsets - offsets[0]][:-1]  # tokens of earlier rows
            inside = np.concatenate([ends - before[row] + row * length, rows])
        found = np.unique(np.concatenate([inside, last]))
        return found[found > 0]

    @cached_property
    def _token_bytes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], pa.Buffer]:
        """Where the bytes of each row begin and end in a buffer; an absent row has none."""
        column = self.arrow.column("tokens")
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int32, count=len(column) + 1, offset=4 * column.offset).astype(
            np.int64
        )
        return ends[:-1], ends[1:], data if data is not None else pa.py_buffer(b"")

    def _token_property(self, name: str) -> int:
        if "tokens" not in self.arrow.schema.names:
            raise InvalidRequest(
                "This blend delivers no column `tokens`. Add it to the columns of a source, or use `arrow`."
            )
        value = (self.arrow.schema.field("tokens").metadata or {}).get(name.encode())
        if value is None:
            raise InvalidRequest(
                f"The tables of this blend do not say their `{name}`. Read the column from `arrow`."
            )
        return int(value)
