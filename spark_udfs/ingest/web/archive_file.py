"""An archive as a sequence of bytes; only the requested parts are read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

from spark_udfs.ingest.place import size_of

PIECE_BYTES, FIRST_BYTES = 1 << 20, 16 << 10


class ArchiveFile:
    """An open file, read by place; `n_read` counts the bytes that were read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.n_read = 0
        self.size = size_of(file)

    @cached_property
    def end_of_data(self) -> int:
        """The place behind the last byte other than zero; zeros behind it are padding, as for `gzip`."""
        end = self.size
        while end:
            first = max(0, end - FIRST_BYTES)
            if piece := self._read(first, end - first).rstrip(b"\0"):
                return first + len(piece)
            end = first
        return 0

    def part(self, begin: int, end: int) -> bytes:
        """The bytes from place `begin` up to `end`, or to the end of the file."""
        content = self._read(begin, max(0, min(end, self.size) - begin))
        self.n_read += len(content)
        return content

    def _read(self, begin: int, n_bytes: int) -> bytes:
        self._file.seek(begin)
        return self._file.read(n_bytes)

    def places(self, pattern: bytes, begin: int, end: int | None = None) -> Iterator[int]:
        """Yield the places of a pattern from `begin` on, before `end`; every byte is read once."""
        last = self.size if end is None else end
        for first in range(begin, last, PIECE_BYTES):
            piece = self.part(first, min(first + PIECE_BYTES, last) + len(pattern) - 1)
            inside = piece.find(pattern)
            while inside >= 0:
                yield first + inside
                inside = piece.find(pattern, inside + 1)
