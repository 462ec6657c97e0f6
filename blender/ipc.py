"""Record batches as Arrow IPC streams: one stream per batch, in pieces that refer to the batch's own buffers.

Arrow would copy the rows into its stream. These pieces name the buffers instead, so the caller copies the
rows once, when it joins the pieces into a message.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

IpcPiece: TypeAlias = "pa.Buffer | memoryview | bytes"

_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class IpcStreams:
    """Streams of batches that share a schema. Use from one thread at a time.

    The schema is encoded once; its bytes begin every stream.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = _PieceSink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        self._sink.take()  # the writer emits the schema with its first batch, and never again
        self._schema = schema.serialize()

    def pieces(self, batch: pa.RecordBatch) -> list[IpcPiece]:
        """The stream of one batch; the pieces keep the batch's buffers alive."""
        self._writer.write_batch(batch)
        return [self._schema, *self._sink.take(), _END_OF_STREAM]


def to_ipc(batch: pa.RecordBatch) -> list[IpcPiece]:
    """The stream of a single batch."""
    return IpcStreams(batch.schema).pieces(batch)


def from_ipc(payload: IpcPiece) -> pa.RecordBatch:
    """The inverse of `to_ipc`; the batch refers to the memory of `payload`."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch()


class _PieceSink:
    """A file for Arrow to write to; it keeps the buffers without copying them."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[IpcPiece] = []

    def write(self, piece: IpcPiece) -> None:
        self._pieces.append(piece)

    def take(self) -> list[IpcPiece]:
        """The pieces written since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
