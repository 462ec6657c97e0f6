"""Page indexes on disk: one per data file and column, and one per snapshot and column over all its files.

    <folder>/files/<id of path, length and column>.pages          a file's pages of one column
    <folder>/files/<id of path and length>.ordinals.npy           the ordinals of its rows
    <folder>/snapshots/<id of table, snapshot and content>.facts  facts from its table's metadata
    <folder>/snapshots/<table>-<snapshot>.<id of column>.pages    the pages of one column over all its files
    <folder>/snapshots/<table>-<snapshot>.<id of column>.json     groups of files, where types differ
    <folder>/snapshots/<table>-<snapshot>.<id of column>.0.pages  the index of the first group
    <folder>/blends/<id of sources and snapshots>.bundle          copies of what opening a blend reads

The folder is a cache and may be deleted at any time. Data files and snapshots never change, so only facts can
be out of date, and they name the metadata file that they come from. A file appears whole or not at all, even
with several writers. Checksums reveal a damaged file on every read; the log names it, and Blender makes it
again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.rows.checksummed_json import verified_content, with_checksum
from blender.rows.index.index_bundle import pack_bundle, unpack_bundle
from blender.rows.snapshot_files import TableFile
from blender.rows.summed import summed, verified
from factory import _native
from factory.atomic_file import write_atomically
from factory.lake.files.page_scan import Fetch

_SMALL = 1 << 16  # bytes; a smaller file is faster to read than to map
_LOG = logging.getLogger(__name__)


class IndexFiles:
    """A folder of indexes; safe for many threads and processes."""

    def __init__(self, folder: Path) -> None:
        # Strings: Path objects would take a tenth of the time to open hundreds of sources.
        self._files, self._snapshots, self._blends = (
            os.fspath(folder / name) for name in ("files", "snapshots", "blends")
        )
        self._copies: dict[str, memoryview] = {}
        self._bundle = ""  # the path of the loaded bundle
        self.bundle_missed = False
        """Whether a file was read that the bundle lacks."""

    def of_file(self, file: TableFile, column: str) -> str:
        """Path of the pages of a file's column."""
        return f"{self._files}/{_id(file.path, str(file.n_bytes), column)}.pages"

    def ordinals_of_file(self, file: TableFile) -> str:
        """Path of the runs of a file's ordinals."""
        return f"{self._files}/{_id(file.path, str(file.n_bytes))}.ordinals.npy"

    def of_snapshot(self, snapshot: str, what: str) -> str:
        """Path of a file about a snapshot."""
        return f"{self._snapshots}/{snapshot}.{what}"

    def facts(self, table: str, snapshot: int, content: str) -> str:
        """Path of the cached facts of a snapshot, or of another one with the same content."""
        return f"{self._snapshots}/{_id(table, str(snapshot), content)}.facts"

    def column_of_snapshot(self, snapshot: str, column: str, end: str) -> str:
        """Path of a file about a snapshot's column."""
        return self.of_snapshot(snapshot, f"{_id(column)}.{end}")

    def load_bundle(self, *opened: str) -> None:
        """Load the bundle that was saved for `opened`; it serves reads until the next call."""
        self._bundle = self._bundle_path(opened)
        kept = _read(self._bundle)
        self._copies, self.bundle_missed = unpack_bundle(kept or b""), False

    def save_bundle(self, paths: Sequence[str], *opened: str) -> None:
        """Save copies of the small ones among these files for `load_bundle`, once all of them exist."""
        if all(map(os.path.exists, paths)):
            found = {_name(path): _read(path) for path in paths}
            small = {name: content for name, content in found.items() if content and len(content) <= _SMALL}
            write_cache(self._bundle_path(opened), pack_bundle(small))

    def _bundle_path(self, opened: Sequence[str]) -> str:
        return f"{self._blends}/{_id(*opened)}.bundle"

    def forget(self, path: str) -> None:
        """Drop the copy of a file that has changed."""
        self._copies.pop(_name(path), None)

    def get(self, path: str) -> bytes | memoryview | None:
        """The content of a file; None if there is none."""
        copy = self._copies.get(_name(path))
        if copy is not None:
            return copy
        self.bundle_missed = True
        return _read(path)

    def get_numbers(self, path: str) -> npt.NDArray[np.int64] | None:
        """A stored table of numbers; None if missing or damaged."""
        kept = self.get(path)
        found = numbers_of(kept)
        if kept is not None and found is None:
            self.discard(path)
        return found

    def get_record(self, path: str) -> Any:
        """A stored JSON record; None if missing or damaged."""
        kept = self.get(path)
        if kept is None:
            return None
        try:
            return json.loads(verified_content(bytes(kept)))
        except ValueError:
            self.discard(path)
            return None

    def discard(self, path: str) -> None:
        """Log and drop a damaged file, and the bundle that may hold a copy of it."""
        self._copies = {}
        for damaged in (path, self._bundle):
            if damaged and Path(damaged).exists():
                _LOG.warning("Page index %s is damaged. It is made again from the data files.", damaged)
                Path(damaged).unlink(missing_ok=True)

    def get_index(self, path: str) -> pa.UInt8Array | None:
        """The content of a stored index, mapped unless small; None if there is none."""
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
        """A stored index, mapped into memory; None if missing or damaged."""
        content = self.get_index(path)
        try:
            return None if content is None else _native.PageIndex(content, fetch)
        except ValueError:
            if self._copies.pop(_name(path), None) is not None:
                return self.open_index(path, fetch)
            self.discard(path)
            return None


def write_cache(path: str, content: bytes) -> None:
    """Write a file that only saves time: if its folder cannot be written, log that instead of failing."""
    try:
        _write(path, content)
    except OSError as error:
        _LOG.warning("Blender cannot cache %s (%s). Make its folder writable.", path, error)


def put_index(path: str, content: pa.UInt8Array) -> None:
    """Store the content of a `PageIndex`."""
    _write(path, memoryview(content.buffers()[1])[: len(content)])


def put_record(path: str, content: Any) -> None:
    """Store JSON with its checksum, for `get_record`."""
    _write(path, with_checksum(json.dumps(content).encode()))


def put_numbers(path: str, numbers: npt.NDArray[np.int64]) -> None:
    """Store a table of numbers behind its checksum, for `numbers_of`."""
    content = np.ascontiguousarray(numbers, dtype="<i8").tobytes()
    head = np.array(numbers.shape, dtype="<i8").tobytes()
    write_cache(path, summed(head + content))


def numbers_of(kept: bytes | memoryview | None) -> npt.NDArray[np.int64] | None:
    """The table of numbers in a stored file; None if missing or damaged."""
    content = verified(kept)
    if content is None:
        return None
    numbers = np.frombuffer(content, dtype="<i8")
    return numbers[2:].reshape(numbers[:2])


def is_whole(index: _native.PageIndex) -> bool:
    """Whether every entry of an index is undamaged; an open index checks only the entries it reads."""
    try:
        for number in range(index.n_pages):
            index.page(number)
    except ValueError:
        return False
    return True


def _write(path: str, content: bytes | memoryview) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, content)


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
