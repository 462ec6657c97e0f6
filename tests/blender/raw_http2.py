"""HTTP/2 by hand, for calls that no gRPC library makes: headers without a message, half a message, a bomb.

frame    length (24 bits) | type | flags | stream | payload
message  compressed (0 or 1) | length (32 bits) | bytes, in one or more DATA frames
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """The bytes of one frame."""
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def message(body: bytes, compressed: bool = False) -> bytes:
    """A gRPC message as it lies in DATA frames."""
    return struct.pack("!BI", compressed, len(body)) + body


def _text(text: str) -> bytes:
    """A string of HPACK, without Huffman coding."""
    data = text.encode()
    if len(data) < 127:
        return bytes([len(data)]) + data
    rest, head = len(data) - 127, bytearray([127])
    while rest > 127:
        head.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*head, rest]) + data


def headers(method: str, **metadata: str) -> bytes:
    """The header block of a call, every field a literal that is not indexed."""
    fields = {"content-type": "application/grpc", "te": "trailers", **metadata}
    named = b"".join(b"\x00" + _text(name.replace("_", "-")) + _text(field) for name, field in fields.items())
    return b"\x83\x86" + b"\x04" + _text(method) + b"\x01" + _text("blender") + named


class RawConnection:
    """An HTTP/2 connection to `host:port`; without `confirm` it never confirms the server's settings."""

    def __init__(self, address: str, settings: bytes = b"", confirm: bool = True) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.sendall(_PREFACE + frame(SETTINGS, 0, 0, settings))
        self._next = 1
        self._rest = b""
        self._confirm = confirm
        self.closed = False
        while confirm and not self._confirmed():
            if self.closed:
                raise ConnectionResetError(f"{address} closed a new connection")

    def _confirmed(self) -> bool:
        return any(kind == SETTINGS and not flags & ACK for kind, flags, _, _ in self.frames(0.01))

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.socket.close()

    def call(self, method: str, **metadata: str) -> int:
        """Send the headers of a call and nothing more; the number of its stream."""
        stream, self._next = self._next, self._next + 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, headers(method, **metadata)))
        return stream

    def send(self, stream: int, data: bytes, end: bool = False) -> None:
        """Send DATA frames, whatever the server's windows are."""
        pieces = [data[start : start + 16384] for start in range(0, len(data), 16384)] or [b""]
        for number, piece in enumerate(pieces, 1):
            last = end and number == len(pieces)
            self.socket.sendall(frame(DATA, END_STREAM if last else 0, stream, piece))

    def frames(self, seconds: float) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, flags, stream and payload of every frame that comes within so long; settings are answered."""
        end = time.monotonic() + seconds
        while True:
            while len(self._rest) >= 9:
                length = int.from_bytes(self._rest[:3], "big")
                if len(self._rest) < 9 + length:
                    break
                kind, flags, stream = struct.unpack("!BBI", self._rest[3:9])
                payload, self._rest = self._rest[9 : 9 + length], self._rest[9 + length :]
                if kind == SETTINGS and not flags & ACK and self._confirm:
                    self.socket.sendall(frame(SETTINGS, ACK, 0))
                yield kind, flags, stream, payload
            left = end - time.monotonic()
            if left <= 0:
                return
            self.socket.settimeout(left)
            try:
                came = self.socket.recv(1 << 16)
            except TimeoutError:
                return
            except ConnectionResetError:
                came = b""
            if not came:
                self.closed = True
                return
            self._rest += came

    def ended(self, seconds: float, enough: Callable[[set[int]], bool] = lambda _: False) -> set[int]:
        """The streams that the server ends within so long, or until there are enough of them."""
        found: set[int] = set()
        for kind, flags, stream, _ in self.frames(seconds):
            if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                found.add(stream)
                if enough(found):
                    break
        return found
