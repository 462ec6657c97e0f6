"""The content of a plain or compressed file as a stream, in bounded memory and of bounded size."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import BinaryIO

import pyarrow as pa

from spark_udfs.ingest_files import bad_read
from spark_udfs.ingest_rows import BadRecord

COMPRESSIONS = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}

# A file of a few kilobytes can expand to terabytes. Text and logs stay far below this.
MAX_EXPANSION = 200
FREE_BYTES = 256 << 20  # what any file may expand to


def most_bytes(file_bytes: int) -> int:
    """How many bytes a compressed file may hold before it is taken for a bomb."""
    return max(FREE_BYTES, MAX_EXPANSION * file_bytes)


def bomb() -> BadRecord:
    """The BadRecord of a file that expands beyond `most_bytes`."""
    detail = f"The file expands to more than {MAX_EXPANSION} times its size and {FREE_BYTES:,} bytes."
    return BadRecord("bomb", detail)


def content(file: BinaryIO, name: str) -> Callable[[int], bytes]:
    """A function that reads up to so many bytes of what an open file holds, decompressed as `name` says.

    It raises BadRecord `corrupt` where the compressed stream is broken or ends early, and `bomb` where
    it expands beyond `most_bytes`.
    """
    compression = COMPRESSIONS.get(PurePosixPath(name).suffix.lower())
    if compression is None:
        return file.read
    stream = (
        lzma.LZMAFile(file)  # noqa: SIM115 - pyarrow has no xz; the file is the caller's
        if compression == "xz"
        else pa.CompressedInputStream(pa.PythonFile(file, "r"), compression)
    )
    left = most_bytes(os.fstat(file.fileno()).st_size)

    def read(n_bytes: int) -> bytes:
        nonlocal left
        try:
            data = bytes(stream.read(n_bytes))
        except (OSError, lzma.LZMAError, EOFError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise bad_read(error) from None
            raise BadRecord("corrupt", f"The compressed stream is broken: {error}.") from None
        left -= len(data)
        if left < 0:
            raise bomb()
        return data

    return read
