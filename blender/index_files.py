"""Page indexes on disk: of each data file and column, and of each snapshot and column all files joined.

    <folder>/files/<id of path, length and column>.pages          a file's pages of one column
    <folder>/files/<id of path and length>.ordinals.npy           which ordinals its rows have
    <folder>/snapshots/<id of metadata file and snapshot>.facts   what a table's metadata says of a snapshot
    <folder>/snapshots/<table>-<snapshot>.<id of column>.pages    all its files' pages of one column
    <folder>/snapshots/<table>-<snapshot>.<id of column>.json     where types differ: which files go together
    <folder>/snapshots/<table>-<snapshot>.<id of column>.0.pages  the index of those

Data files and snapshots never change, so nothing here is ever out of date, and all of it can be made again:
the folder is a cache and may be deleted at any time. A file appears in it whole or not at all, however many
processes write it at once. One that was damaged is found out by its checksums and made again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.snapshot_files import TableFile
from factory import _native

_SMALL = 1 << 16  # bytes that are read in less time than it takes to map them
_LOG = logging.getLogger(__name__)

Fetch = Callable[[Sequence[tuple[str, Sequence[tuple[int, int]]]]], list[list[bytes]]]
"""Reads ranges of files that are not local: (path, ranges) in, what they hold out."""


class IndexFiles:
    """A folder of indexes; safe for many threads and processes."""

    def __init__(self, folder: Path) -> None:
        self._files, self._snapshots = folder / "files", folder / "snapshots"

    def of_file(self, file: TableFile, column: str) -> Path:
        """Where the pages of a file's column are kept."""
        return self._files / f"{_id(file.path, str(file.n_bytes), column)}.pages"

    def ordinals_of_file(self, file: TableFile) -> Path:
        """Where the runs of a file's ordinals are kept."""
        return self._files / f"{_id(file.path, str(file.n_bytes))}.ordinals.npy"

    def of_snapshot(self, snapshot: str, what: str) -> Path:
        """Where something of a snapshot is kept."""
        return self._snapshots / f"{snapshot}.{what}"

    def of_metadata(self, metadata_file: str, snapshot: int, content: str) -> Path:
        """Where it is kept what a metadata file says of a pinned snapshot, or of one of the same content."""
        return self._snapshots / f"{_id(metadata_file, str(snapshot), content)}.facts"

    def column_of_snapshot(self, snapshot: str, column: str, end: str) -> Path:
        """Where something of a snapshot's column is kept."""
        return self.of_snapshot(snapshot, f"{_id(column)}.{end}")


def put(path: Path, content: bytes | memoryview) -> None:
    """Make a file appear at once, whole; what is there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def keep(path: Path, content: bytes) -> None:
    """As `put`, of what only saves time: the log tells of a folder that cannot be written."""
    try:
        put(path, content)
    except OSError as error:
        _LOG.warning("Blender found out %s and cannot keep it (%s). Make its folder writable.", path, error)


def put_index(path: Path, content: pa.UInt8Array) -> None:
    """Keep what a `PageIndex` is made from."""
    put(path, memoryview(content.buffers()[1])[: len(content)])


def put_numbers(path: Path, numbers: npt.NDArray[np.int64]) -> None:
    """Keep a table of numbers behind the sum that `get_numbers` holds it against."""
    content = np.ascontiguousarray(numbers, dtype="<i8").tobytes()
    head = np.array(numbers.shape, dtype="<i8").tobytes()
    keep(path, hashlib.blake2b(head + content, digest_size=32).digest() + head + content)


def get(path: Path) -> bytes | None:
    """What was put; None where nothing was."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None


def get_numbers(path: Path) -> npt.NDArray[np.int64] | None:
    """A table of numbers as it was put; None where there is none, or no whole one."""
    kept = get(path)
    if kept is None or len(kept) < 48 or hashlib.blake2b(kept[32:], digest_size=32).digest() != kept[:32]:
        return None
    return np.frombuffer(kept, dtype="<i8", offset=48).reshape(np.frombuffer(kept[32:48], dtype="<i8"))


def open_index(path: Path, fetch: Fetch | None = None) -> _native.PageIndex | None:
    """An index that was put, mapped into memory; None where there is none, or no whole one."""
    content = get_index(path)
    try:
        return None if content is None else _native.PageIndex(content, fetch)
    except ValueError:
        return None


def get_index(path: Path) -> pa.UInt8Array | None:
    """What an index that was put is made from, mapped into memory unless small; None where there is none."""
    try:
        with path.open("rb", buffering=0) as file:
            small = os.fstat(file.fileno()).st_size <= _SMALL
            content = pa.py_buffer(file.read()) if small else pa.memory_map(os.fspath(path)).read_buffer()
    except FileNotFoundError:
        return None
    return pa.Array.from_buffers(pa.uint8(), content.size, [None, content])


def _id(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
