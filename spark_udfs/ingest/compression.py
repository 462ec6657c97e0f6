"""The content of a plain or compressed file as a stream, in bounded memory and of bounded size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import BinaryIO

from spark_udfs.ingest.bounds import FREE_BYTES, MAX_EXPANSION, most_bytes
from spark_udfs.ingest.decoders import decoded
from spark_udfs.ingest.place import size_of
from spark_udfs.ingest.rows import BadRecord

COMPRESSIONS = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}


def is_compressed(name: str) -> bool:
    """Whether a file of this name is compressed."""
    return PurePosixPath(name).suffix.lower() in COMPRESSIONS


def bomb(location: str = "byte 0") -> BadRecord:
    """Return the BadRecord of a file that expands beyond `most_bytes`."""
    detail = f"The file expands to more than {MAX_EXPANSION} times its size and {FREE_BYTES:,} bytes."
    return BadRecord("bomb", detail, location)


class EndOfPreview(Exception):
    """The first bytes of a file, which were asked for, have been read."""


def content(file: BinaryIO, name: str, first_bytes: int | None = None) -> Callable[[int], bytes]:
    """Return a function that reads up to n bytes of an open file, decompressed according to `name`.

    With `first_bytes` it raises EndOfPreview behind them.

    It returns every byte before the damage of a broken stream, then raises what `decoded` raises, and raises
    BadRecord `bomb` once the file expands beyond `most_bytes`.
    """
    if first_bytes is not None:
        return _preview(content(file, name), first_bytes)
    compression = COMPRESSIONS.get(PurePosixPath(name).suffix.lower())
    if compression is None:
        return file.read
    pieces = decoded(file, compression)
    budget = most_bytes(size_of(file))
    piece, position = b"", 0

    def read(n_bytes: int) -> bytes:
        nonlocal piece, position, budget
        while position == len(piece):
            following = next(pieces, None)
            if following is None:
                return b""
            piece, position = following, 0
            budget -= len(piece)
            if budget < 0:
                raise bomb()
        portion = piece[position : position + n_bytes]
        position += len(portion)
        return portion

    return read


def _preview(whole: Callable[[int], bytes], first_bytes: int) -> Callable[[int], bytes]:
    n_left = first_bytes

    def read(n_bytes: int) -> bytes:
        nonlocal n_left
        if n_left <= 0:
            raise EndOfPreview
        portion = whole(min(n_bytes, n_left))
        n_left -= len(portion)
        return portion

    return read
