"""Checksum files in the format of Hadoop's local file system.

    warehouse/raw/web/data/00000-7.parquet
    warehouse/raw/web/data/.00000-7.parquet.crc     "crc\\0", bytes under each sum, then the CRC-32 sums

Spark writes such a file for every file of an embedded lake and verifies it on read. So do the readers and
writers here (`factory.lake.files.checked_io`): Parquet pages carry their own checksums, but metadata,
manifests, page headers and footers do not. A file without a checksum file is read unverified; object stores
keep their own checksums.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from factory.errors import DamagedFile

_MAGIC, _HEAD = b"crc\0", struct.Struct(">4sI")
_UNDER_EACH = 512  # bytes per checksum, Hadoop's default
_WHOLE = 1 << 20  # Parquet files up to this size are verified whole, longer ones by their footer
_PARQUET = b"PAR1"


def sums_file(path: str) -> str:
    """Return the path of the checksum file."""
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.crc"


def require_whole(path: str) -> None:
    """Raise DamagedFile if a local file, or the footer of a long Parquet file, has changed.

    Raises FileNotFoundError for a missing file.
    """
    try:
        sums = Path(sums_file(path)).read_bytes()
    except FileNotFoundError:
        return
    with Path(path).open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        begin = _footer(file.fileno(), size) if path.endswith(".parquet") and size > _WHOLE else 0
        _require(path, file.fileno(), size, begin, sums)


def _require(path: str, file: int, size: int, begin: int, sums: bytes) -> None:
    """Verify `file` from byte `begin` on."""
    magic, under_each = _HEAD.unpack_from(sums) if len(sums) >= _HEAD.size else (b"", 0)
    if magic != _MAGIC or not under_each or (len(sums) - _HEAD.size) % 4:
        raise DamagedFile(
            f"File {sums_file(path)}, which has the checksums of {path}, is not as it was written. "
            f"Restore it, or delete it if {path} is known to be whole."
        )
    if (size + under_each - 1) // under_each != (len(sums) - _HEAD.size) // 4:
        raise changed(path, f"it has {size:,} bytes, which do not match its checksum file")
    first = begin // under_each
    content = os.pread(file, size - first * under_each, first * under_each)
    expected = struct.unpack_from(f">{len(sums) // 4 - 2 - first}I", sums, _HEAD.size + 4 * first)
    for number, (found, sum_) in enumerate(zip(_sums(content, under_each), expected, strict=True), first):
        if found != sum_:
            at = number * under_each
            raise changed(path, f"bytes {at:,} to {min(at + under_each, size):,} have changed")


def changed(path: str, what: str) -> DamagedFile:
    """Return the error for a file; `what` completes its sentence."""
    return DamagedFile(
        f"File {path} is not as it was written: {what}. "
        "Restore it, or make its table again: factory materialize."
    )


def _footer(file: int, size: int) -> int:
    """Return the offset of a Parquet file's footer. Page indexes are verified against the pages."""
    end = os.pread(file, 8, size - 8)
    return max(0, size - 8 - int.from_bytes(end[:4], "little")) if end[4:] == _PARQUET else 0


def _sums(content: bytes | memoryview, under_each: int = _UNDER_EACH) -> Iterator[int]:
    whole = memoryview(content)
    for start in range(0, len(whole), under_each):
        yield zlib.crc32(whole[start : start + under_each])


class FileSums:
    """Checksums of a file being written, updated by `add`."""

    def __init__(self) -> None:
        self._sums = bytearray(_HEAD.pack(_MAGIC, _UNDER_EACH))
        self._rest = b""

    def add(self, content: bytes | memoryview) -> None:
        """Add the next bytes of the file."""
        whole = memoryview(self._rest + bytes(content))
        end = len(whole) - len(whole) % _UNDER_EACH
        for found in _sums(whole[:end]):
            self._sums += found.to_bytes(4, "big")
        self._rest = bytes(whole[end:])

    def put(self, path: str) -> None:
        """Write the checksum file of the complete file at `path`."""
        if self._rest:
            self._sums += zlib.crc32(self._rest).to_bytes(4, "big")
        target = Path(sums_file(path))
        beside = target.with_name(f"{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(self._sums)
            beside.replace(target)
        finally:
            with suppress(FileNotFoundError):
                beside.unlink()
