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
again. While the folder cannot be written or read, as on a full disk, Blender keeps the indexes in memory.
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
from factory.errors import first_line
from factory.lake.files.page_scan import Fetch

_SMALL = 1 << 16  # bytes; a smaller file is faster to read than to map
_MISSING = (FileNotFoundError, NotADirectoryError)
_LOG = logging.getLogger(__name__)


class IndexFiles:
    """A folder of indexes; safe for many threads and processes."""

    def __init__(self, folder: Path) -> None:
        # Strings: Path objects would take a tenth of the time to open hundreds of sources.
        self._files, self._snapshots, self._blends = (
            os.fspath(folder / name) for name in ("files", "snapshots", "blends")
        )
        self._folder = folder
        self._refusals: set[tuple[str, int | None]] = set()  # those the log has named
        self._undeletable: set[str] = set()  # damaged files that no read may return
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
        kept = self._read(self._bundle)
        self._copies, self.bundle_missed = unpack_bundle(kept or b""), False

    def save_bundle(self, paths: Sequence[str], *opened: str) -> None:
        """Save copies of the small ones among these files for `load_bundle`, once all of them exist."""
        if all(map(os.path.exists, paths)):
            found = {_name(path): self._read(path) for path in paths}
            small = {name: content for name, content in found.items() if content and len(content) <= _SMALL}
            self.put(self._bundle_path(opened), pack_bundle(small))

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
        return self._read(path)

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
        for damaged in filter(os.path.exists, (path, self._bundle)):
            _LOG.warning("Page index %s is damaged. It is made again from the data files.", damaged)
            try:
                Path(damaged).unlink(missing_ok=True)
            except OSError as error:
                self._undeletable.add(damaged)
                self._log_refusal("written", error)

    def get_index(self, path: str) -> pa.UInt8Array | None:
        """The content of a stored index, mapped unless small; None if there is none."""
        copy = self._copies.get(_name(path))
        if copy is not None:
            content = pa.py_buffer(copy)
        elif path in self._undeletable:
            return None
        else:
            try:
                with Path(path).open("rb", buffering=0) as file:
                    small = os.fstat(file.fileno()).st_size <= _SMALL
                    content = pa.py_buffer(file.read()) if small else pa.memory_map(path).read_buffer()
            except _MISSING:
                return None
            except OSError as error:
                self._log_refusal("read", error)
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

    def put(self, path: str, content: bytes | memoryview) -> None:
        """Store a file; if the folder cannot be written, log that instead of failing."""
        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)
        except OSError as error:
            self._log_refusal("written", error)
        else:
            self._undeletable.discard(path)

    def put_index(self, path: str, content: pa.UInt8Array) -> None:
        """Store the content of a `PageIndex`."""
        self.put(path, memoryview(content.buffers()[1])[: len(content)])

    def put_record(self, path: str, content: Any) -> None:
        """Store JSON with its checksum, for `get_record`."""
        self.put(path, with_checksum(json.dumps(content).encode()))

    def put_numbers(self, path: str, numbers: npt.NDArray[np.int64]) -> None:
        """Store a table of numbers behind its checksum, for `get_numbers`."""
        content = np.ascontiguousarray(numbers, dtype="<i8").tobytes()
        head = np.array(numbers.shape, dtype="<i8").tobytes()
        self.put(path, summed(head + content))

    def _read(self, path: str) -> bytes | None:
        if path in self._undeletable:
            return None
        try:
            with Path(path).open("rb", buffering=0) as file:
                return file.read()
        except _MISSING:
            return None
        except OSError as error:
            self._log_refusal("read", error)
            return None

    def _log_refusal(self, action: str, error: OSError) -> None:
        """Log why the folder cannot be written or read, once per reason: a blend has hundreds of files."""
        refusal = (action, error.errno)
        if refusal in self._refusals:
            return
        self._refusals.add(refusal)
        _LOG.warning(
            "The page index folder %s cannot be %s (%s). Blender keeps the indexes in memory, and makes them "
            "again from the data files in every process. Free space there, or grant access to the folder.",
            self._folder,
            action,
            error.strerror or first_line(error),
        )


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


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _id(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
