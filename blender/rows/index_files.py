"""Page indexes on disk: of each data file and column, and of each snapshot and column all files joined.

    <folder>/files/<id of path, length and column>.pages          a file's pages of one column
    <folder>/files/<id of path and length>.ordinals.npy           which ordinals its rows have
    <folder>/snapshots/<id of table, snapshot and content>.facts  what its metadata said at last
    <folder>/snapshots/<table>-<snapshot>.<id of column>.pages    all its files' pages of one column
    <folder>/snapshots/<table>-<snapshot>.<id of column>.json     where types differ: which files go together
    <folder>/snapshots/<table>-<snapshot>.<id of column>.0.pages  the index of those
    <folder>/blends/<id of sources and snapshots>.opening         copies of what opening reads

Data files and snapshots never change, so nothing here but facts is ever out of date, and those name the
metadata file that said them. All of it can be made again:
the folder is a cache and may be deleted at any time. A file appears in it whole or not at all, however many
processes write it at once. One that was damaged is found out by its checksums, whenever it is looked at, and
made again; the log names it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.rows.checksummed_json import verified_content, with_checksum
from blender.rows.index_bundle import pack_bundle, unpack_bundle
from blender.rows.snapshot_files import TableFile
from factory import _native
from factory.lake.files.page_scan import Fetch

_SMALL = 1 << 16  # bytes that are read in less time than it takes to map them
_LOG = logging.getLogger(__name__)


class IndexFiles:
    """A folder of indexes; safe for many threads and processes."""

    def __init__(self, folder: Path) -> None:
        # Strings: of hundreds of sources to make each path an object takes a tenth of opening them.
        self._files, self._snapshots, self._blends = (
            os.fspath(folder / name) for name in ("files", "snapshots", "blends")
        )
        self._copies: dict[str, memoryview] = {}
        self._brought = ""  # the file with the copies
        self.lacked = False
        """Whether something was read that was not among the copies."""

    def of_file(self, file: TableFile, column: str) -> str:
        """Where the pages of a file's column are kept."""
        return f"{self._files}/{_id(file.path, str(file.n_bytes), column)}.pages"

    def ordinals_of_file(self, file: TableFile) -> str:
        """Where the runs of a file's ordinals are kept."""
        return f"{self._files}/{_id(file.path, str(file.n_bytes))}.ordinals.npy"

    def of_snapshot(self, snapshot: str, what: str) -> str:
        """Where something of a snapshot is kept."""
        return f"{self._snapshots}/{snapshot}.{what}"

    def facts(self, table: str, snapshot: int, content: str) -> str:
        """Where it is kept what a table's metadata says of a snapshot, or of one of the same content."""
        return f"{self._snapshots}/{_id(table, str(snapshot), content)}.facts"

    def column_of_snapshot(self, snapshot: str, column: str, end: str) -> str:
        """Where something of a snapshot's column is kept."""
        return self.of_snapshot(snapshot, f"{_id(column)}.{end}")

    def load_bundle(self, *opened: str) -> None:
        """Have copies at hand of what opening something reads, until the next call."""
        self._brought = self._copies_of(opened)
        kept = _read(self._brought)
        self._copies, self.lacked = unpack_bundle(kept or b""), False

    def save_bundle(self, paths: Sequence[str], *opened: str) -> None:
        """Keep copies of the small ones among these files for `load_bundle`, once all are there."""
        if all(map(os.path.exists, paths)):
            found = {_name(path): _read(path) for path in paths}
            small = {name: content for name, content in found.items() if content and len(content) <= _SMALL}
            keep(self._copies_of(opened), pack_bundle(small))

    def _copies_of(self, opened: Sequence[str]) -> str:
        return f"{self._blends}/{_id(*opened)}.opening"

    def forget(self, path: str) -> None:
        """Have no copy of a file at hand: it has changed."""
        self._copies.pop(_name(path), None)

    def get(self, path: str) -> bytes | memoryview | None:
        """What was put; None where nothing was."""
        copy = self._copies.get(_name(path))
        if copy is not None:
            return copy
        self.lacked = True
        return _read(path)

    def get_numbers(self, path: str) -> npt.NDArray[np.int64] | None:
        """A table of numbers as it was put; None where there is none, or no whole one."""
        kept = self.get(path)
        found = numbers_of(kept)
        if kept is not None and found is None:
            self.discard(path)
        return found

    def get_record(self, path: str) -> Any:
        """What `put_record` put; None where there is none, or no whole one."""
        kept = self.get(path)
        if kept is None:
            return None
        try:
            return json.loads(verified_content(bytes(kept)))
        except ValueError:
            self.discard(path)
            return None

    def discard(self, path: str) -> None:
        """Drop a file that is damaged, and the copies of files among which it may be; the log tells of it."""
        self._copies = {}
        for damaged in (path, self._brought):
            if damaged and Path(damaged).exists():
                _LOG.warning("Page index %s is damaged. It is made again from the data files.", damaged)
                Path(damaged).unlink(missing_ok=True)

    def get_index(self, path: str) -> pa.UInt8Array | None:
        """What an index that was put is made from, mapped unless small; None where there is none."""
        copy = self._copies.get(_name(path))
        if copy is not None:
            content = pa.py_buffer(copy)
        else:
            try:
                with Path(path).open("rb", buffering=0) as file:
                    small = os.fstat(file.fileno()).st_size <= _SMALL
                    content = pa.py_buffer(file.read()) if small else pa.memory_map(path).read_buffer()
            except FileNotFoundError:
                return None
        return pa.Array.from_buffers(pa.uint8(), content.size, [None, content])

    def open_index(self, path: str, fetch: Fetch | None = None) -> _native.PageIndex | None:
        """An index that was put, mapped into memory; None where there is none, or no whole one."""
        content = self.get_index(path)
        try:
            return None if content is None else _native.PageIndex(content, fetch)
        except ValueError:
            if self._copies.pop(_name(path), None) is not None:
                return self.open_index(path, fetch)
            self.discard(path)
            return None


def put(path: str, content: bytes | memoryview) -> None:
    """Make a file appear at once, whole; what is there is replaced."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.{uuid.uuid4().hex}")
    try:
        beside.write_bytes(content)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def keep(path: str, content: bytes) -> None:
    """As `put`, of what only saves time: the log tells of a folder that cannot be written."""
    try:
        put(path, content)
    except OSError as error:
        _LOG.warning("Blender found out %s and cannot keep it (%s). Make its folder writable.", path, error)


def put_index(path: str, content: pa.UInt8Array) -> None:
    """Keep what a `PageIndex` is made from."""
    put(path, memoryview(content.buffers()[1])[: len(content)])


def put_record(path: str, content: Any) -> None:
    """Keep a list of JSON, with the sum that `get_record` holds it against."""
    put(path, with_checksum(json.dumps(content).encode()))


def put_numbers(path: str, numbers: npt.NDArray[np.int64]) -> None:
    """Keep a table of numbers behind the sum that `numbers_of` holds it against."""
    content = np.ascontiguousarray(numbers, dtype="<i8").tobytes()
    head = np.array(numbers.shape, dtype="<i8").tobytes()
    keep(path, hashlib.blake2b(head + content, digest_size=32).digest() + head + content)


def numbers_of(kept: bytes | memoryview | None) -> npt.NDArray[np.int64] | None:
    """The table of numbers that `put_numbers` put; None where there is none, or no whole one."""
    if kept is None or len(kept) < 48 or hashlib.blake2b(kept[32:], digest_size=32).digest() != kept[:32]:
        return None
    return np.frombuffer(kept, dtype="<i8", offset=48).reshape(np.frombuffer(kept[32:48], dtype="<i8"))


def is_whole(index: _native.PageIndex) -> bool:
    """Whether every entry of an index is as it was put: an open one looks at those it is asked for."""
    try:
        for number in range(index.n_pages):
            index.page(number)
    except ValueError:
        return False
    return True


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _read(path: str) -> bytes | None:
    try:
        with Path(path).open("rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _id(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
