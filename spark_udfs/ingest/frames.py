"""The content of a part of a Zstandard file: the frames that begin in the part.

The headers of frames and blocks tell where the next ones begin (RFC 8878), so nothing is decompressed to find
the frames of a part. `pzstd` and writers of seekable files write many frames, `zstd` one, for the first part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from spark_udfs.ingest.bounds import most_bytes
from spark_udfs.ingest.compression import bomb
from spark_udfs.ingest.decoders import decoded, frame_places
from spark_udfs.ingest.place import FilePart


class FramesPart:
    """The content of the frames of a part, and of the frames behind them."""

    def __init__(self, file: BinaryIO, part: FilePart) -> None:
        self.n_own: int | None = None
        self._file = file
        begin, self._end = _own_frames(file, part)
        self._pieces = iter(()) if begin is None else decoded(file, "zstd", begin, self._end)
        self._piece, self._n_read = b"", 0
        own_bytes = part.end - part.begin
        if begin is not None:
            own_bytes = max(own_bytes, (self._end or part.state.n_bytes) - begin)
        self._most_bytes = most_bytes(own_bytes)

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes; raises BadRecord as `decoded`, and `bomb`."""
        while not self._piece:
            piece = next(self._pieces, None)
            if piece is None and self.n_own is not None:
                return b""
            if piece is None:
                self.n_own = self._n_read
                self._pieces = self._behind()
                continue
            self._piece = piece
            self._n_read += len(piece)
            if self._n_read > self._most_bytes:
                raise bomb()
        portion = self._piece[:n_bytes]
        self._piece = self._piece[len(portion) :]
        return portion

    def _behind(self) -> Iterator[bytes]:
        return iter(()) if self._end is None else decoded(self._file, "zstd", self._end)


def _own_frames(file: BinaryIO, part: FilePart) -> tuple[int | None, int | None]:
    """Return the places of the first frame of a part, None without one, and of the first one behind it.

    Bytes that are no frame belong to the frame before them. A part with a start begins and ends with frames.
    """
    if part.start is not None:
        return part.start, part.end if part.end < part.state.n_bytes else None
    begin = None if part.begin else 0
    for place in frame_places(file):
        if place >= part.end:
            return begin, place
        if begin is None and place >= part.begin:
            begin = place
    return begin, None
