"""A block of rows as the bytes of one gRPC message, and back, without copying the rows through protobuf.

    08 offset | 10 next_offset | 7a length, padded to a multiple of 8 bytes | payload: an Arrow IPC stream

The bytes are a valid `FetchResponse` for every protobuf client. Ours write and read the few bytes before the
payload by hand: generated code copies the payload into a message and out again, which doubled the server's
CPU at 1 MiB. Arrow too would copy the rows into its stream; here it names the buffers they lie in, and they
are copied once, into the message. A varint may be written longer than needed, and the length is, so that the
payload begins aligned and the client reads it in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa

_OFFSET, _NEXT_OFFSET, _PAYLOAD = 1, 2, 15
_VARINT, _BYTES = 0, 2
_ALIGNMENT = 8
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_LENGTH_BYTES = 5  # a varint of 5 bytes holds more than a message can


Piece: TypeAlias = "pa.Buffer | memoryview | bytes"


class WireBlock(NamedTuple):
    """A block as it came; `payload` is an Arrow IPC stream of one record batch."""

    offset: int
    next_offset: int
    payload: memoryview


class Outgoing(NamedTuple):
    """A block on its way; the pieces of its payload lie where the rows lie."""

    offset: int
    next_offset: int
    pieces: Sequence[Piece]


class IpcPieces:
    """Batches of one schema, each as an Arrow IPC stream of its own in pieces that are yet to be joined.

    The schema is written once and its bytes begin every stream. Of one thread at a time.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = _Pieces()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        self._sink.taken()  # with its first batch the writer writes the schema, and never again
        self._schema = schema.serialize()

    def of(self, batch: pa.RecordBatch) -> list[Piece]:
        """The pieces of a batch, which hold its buffers as they are."""
        self._writer.write_batch(batch)
        return [self._schema, *self._sink.taken(), _END_OF_STREAM]


def to_ipc(batch: pa.RecordBatch) -> list[Piece]:
    """The pieces of a single batch."""
    return IpcPieces(batch.schema).of(batch)


def from_ipc(payload: pa.Buffer | memoryview | bytes) -> pa.RecordBatch:
    """The inverse of `to_ipc`; the batch lies in the memory of `payload`."""
    with pa.ipc.open_stream(pa.py_buffer(payload)) as reader:
        return reader.read_next_batch()


def serialize(block: Outgoing) -> bytes:
    """The bytes of the `FetchResponse`."""
    length = sum(memoryview(piece).nbytes for piece in block.pieces)
    head = b"".join(
        (
            _key(_OFFSET, _VARINT),
            _varint(block.offset),
            _key(_NEXT_OFFSET, _VARINT),
            _varint(block.next_offset),
            _key(_PAYLOAD, _BYTES),
        )
    )
    padding = -(len(head) + _LENGTH_BYTES) % _ALIGNMENT
    # The tenth byte of a varint may carry one bit only, so lengths are padded to nine bytes at most.
    width = _LENGTH_BYTES + padding
    if width > 9:
        width -= _ALIGNMENT
    return b"".join((head, _varint(length, width), *block.pieces))


def parse(message: bytes) -> WireBlock:
    """The inverse of `serialize`, for the bytes of any writer; raises ValueError where they are cut short."""
    view, place = memoryview(message), 0
    offset, next_offset = 0, 0
    payload = view[:0]
    while place < len(view):
        key, place = _read_varint(view, place)
        value, place = _read_varint(view, place)
        if key & 7 == _BYTES:
            if place + value > len(view):
                raise ValueError(f"A message of {len(view)} bytes ends inside a field of {value}.")
            if key >> 3 == _PAYLOAD:
                payload = view[place : place + value]
            place += value
        elif key & 7 != _VARINT:
            raise ValueError(f"A message has a field of wire type {key & 7}, which no FetchResponse has.")
        elif key >> 3 == _OFFSET:
            offset = value
        elif key >> 3 == _NEXT_OFFSET:
            next_offset = value
    return WireBlock(offset, next_offset, payload)


class _Pieces:
    """A file for Arrow to write to that keeps the buffers it is given."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[Piece] = []

    def write(self, piece: Piece) -> None:
        self._pieces.append(piece)

    def taken(self) -> list[Piece]:
        """What was written since it was last asked for."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def _key(field: int, kind: int) -> bytes:
    return bytes([field << 3 | kind])


def _varint(value: int, width: int = 1) -> bytes:
    """`value` in at least `width` bytes."""
    encoded = bytearray()
    while value > 0x7F or len(encoded) + 1 < width:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _read_varint(view: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(view):
        byte = view[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ValueError(f"A message of {len(view)} bytes ends inside a number.")
