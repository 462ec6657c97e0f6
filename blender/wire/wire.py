"""A block of rows as the bytes of one gRPC message, and back; protobuf never copies the rows.

    08 offset | 10 next_offset | 7a length, padded to a multiple of 8 bytes | payload: an Arrow IPC stream

The bytes are a valid `FetchResponse` for every protobuf client. Ours write and read the few bytes before the
payload by hand: generated code copies the payload into a message and out again, which doubled the server's
CPU at 1 MiB. Protobuf accepts a varint that is longer than needed; the length is padded that way, so that the
payload is aligned and the client reads it in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from blender.ipc import IpcPiece

_OFFSET, _NEXT_OFFSET, _PAYLOAD = 1, 2, 15
_VARINT, _BYTES = 0, 2
_ALIGNMENT = 8
_LENGTH_BYTES = 5  # a varint of 5 bytes can express any message length


class ReceivedBlock(NamedTuple):
    """A block as received; `payload` is an Arrow IPC stream of one record batch."""

    offset: int
    next_offset: int
    payload: memoryview


class OutgoingBlock(NamedTuple):
    """A block to send; `pieces` of its payload refer to the rows where they already are."""

    offset: int
    next_offset: int
    pieces: Sequence[IpcPiece]


def serialize(block: OutgoingBlock) -> bytes:
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


def parse(message: bytes) -> ReceivedBlock:
    """The inverse of `serialize`, for messages of any writer; raises ValueError for a truncated message."""
    view, position = memoryview(message), 0
    offset, next_offset = 0, 0
    payload = view[:0]
    while position < len(view):
        key, position = _read_varint(view, position)
        value, position = _read_varint(view, position)
        if key & 7 == _BYTES:
            if position + value > len(view):
                raise ValueError(f"A message of {len(view)} bytes ends inside a field of {value}.")
            if key >> 3 == _PAYLOAD:
                payload = view[position : position + value]
            position += value
        elif key & 7 != _VARINT:
            raise ValueError(f"A message has a field of wire type {key & 7}, which no FetchResponse has.")
        elif key >> 3 == _OFFSET:
            offset = value
        elif key >> 3 == _NEXT_OFFSET:
            next_offset = value
    return ReceivedBlock(offset, next_offset, payload)


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


def _read_varint(view: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(view):
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError(f"A message of {len(view)} bytes ends inside a number.")
