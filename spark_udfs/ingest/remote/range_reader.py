"""A remote object as a file: it seeks, reads ahead while it is read in order, and resumes broken answers."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

from factory.errors import ConfigurationError
from spark_udfs.ingest.remote.objects import (
    TRIES,
    Interrupted,
    ObjectState,
    RemoteFailure,
    RemoteObjects,
    pause,
)

FIRST_BYTES = 1 << 16  # of a range; each one that follows the one before it is twice as long
MOST_BYTES = 1 << 23


class RangeReader(io.RawIOBase):
    """The content of an object with a state, in memory of at most MOST_BYTES, or of one larger `read`.

    `address` names it in errors. A reader of a part needs little behind its `end`, so reading ahead stops
    there. Reading raises FileNotFoundError, ObjectChanged, RemoteFailure and ConfigurationError.
    """

    def __init__(
        self, objects: RemoteObjects, name: str, state: ObjectState, address: str, end: int | None = None
    ) -> None:
        self._objects, self._name, self._state, self._address = objects, name, state, address
        self._end = state.n_bytes if end is None else end
        self._position = 0
        self._range, self._begin = b"", 0
        self._next_bytes = FIRST_BYTES
        self._stream = self._resumed(0, state.n_bytes)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._state.n_bytes}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        n_bytes = min(len(buffer), self._state.n_bytes - self._position)
        if n_bytes <= 0:
            return 0
        end = self._begin + len(self._range)
        if not self._begin <= self._position < end:
            if self._state.has_ranges:
                is_before, was_before = self._position < self._end, self._begin < self._end
                is_next = self._position == end and is_before == was_before
                self._next_bytes = min(2 * self._next_bytes, MOST_BYTES) if is_next else FIRST_BYTES
                most = self._end - self._position if is_before else self._next_bytes
                self._fetch(max(n_bytes, min(self._next_bytes, most)))
            else:
                self._advance()
        offset = self._position - self._begin
        piece = self._range[offset : offset + n_bytes]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _fetch(self, n_bytes: int) -> None:
        """Hold the range of so many bytes from the position on."""
        end = min(self._position + n_bytes, self._state.n_bytes)
        self._range, self._begin = b"".join(self._resumed(self._position, end)), self._position

    def _advance(self) -> None:
        """Hold the piece at the position, of an object that comes from its begin only."""
        if self._position < self._begin:
            raise ConfigurationError(
                f"The server of `{self._address}` serves no ranges, and this format is not read from the "
                "begin to the end. Download it, and name the file."
            )
        while self._begin + len(self._range) <= self._position:
            self._begin += len(self._range)
            self._range = next(self._stream)

    def _resumed(self, begin: int, end: int) -> Iterator[bytes]:
        """Yield the bytes from `begin` to `end`; a broken answer is continued where it broke."""
        n_tries, cause = 0, ""
        while begin < end:
            if n_tries == TRIES:
                raise RemoteFailure(
                    f"`{self._address}` breaks off at byte {begin:,} of {self._state.n_bytes:,} ({cause}), "
                    f"{TRIES} times in a row. Run again when it is served whole."
                )
            pause(n_tries)
            n_tries, cause = n_tries + 1, "fewer bytes than announced"
            try:
                for piece in self._objects.pieces(self._name, begin, end, self._state):
                    if not piece:
                        continue
                    yield piece[: end - begin]
                    begin, n_tries = begin + len(piece), 1
            except Interrupted as interruption:
                cause = str(interruption)
                if n_tries < TRIES:
                    time.sleep(interruption.pause_s)
