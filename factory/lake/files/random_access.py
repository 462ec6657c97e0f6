"""Random access to a column of a table's data files, local or in an S3-compatible store.

A row costs the read of its page (`native/src/pages`), so tables read like this have small pages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

from factory import _native
from factory.errors import DamagedFile
from factory.lake.files.location import local_path
from factory.lake.files.page_scan import Range, scan_file
from factory.lake.files.parquet import gone, require_sound
from factory.lake.files.storage import opened

_KEPT_BYTES = 64 << 20  # budget for pages that several rows of one call share
_THREADS = 16  # concurrent range requests to a store


class ScatteredRows:
    """Reads one column at rows in any order; a file's footer is read once."""

    def __init__(self, storage: Mapping[str, str], column: str, kind: pa.DataType | None) -> None:
        """`storage` as `factory.lake.files.fetch.opened` has it; `kind` is the type of the column.

        `column` may be a leaf of a nested one by its path in Parquet, with None: the type that files have.
        """
        self._storage, self._column, self._kind = storage, column, kind
        self._indexes: dict[str, _native.PageIndex] = {}
        self._files: dict[str, pa.NativeFile] = {}
        self._cache = _native.PageCache(_KEPT_BYTES)

    def read(self, files: pa.StringArray, rows: pa.Int64Array) -> pa.Array:
        """Return the value at each (file, row), null where these are null.

        Raises DamagedFile for a changed page or a missing file, NotImplementedError for a file that cannot be
        read by page.
        """
        named, numbers = files.dictionary_encode(), rows.fill_null(0).to_numpy()
        which = named.indices.fill_null(-1).to_numpy()
        order = np.argsort(which, kind="stable")
        ends = np.searchsorted(which[order], np.arange(-1, len(named.dictionary)), side="right")
        parts = []
        for file, begin, end in zip(named.dictionary.to_pylist(), ends, ends[1:], strict=False):
            positions = order[begin:end]
            parts.append((self._index(file), numbers[positions], positions, False))
        with _named():
            kind = parts[0][0].type if self._kind is None else self._kind
            return _native.gather_pages(kind, len(rows), parts, self._cache)

    def _index(self, file: str) -> _native.PageIndex:
        if file not in self._indexes:
            local = local_path(file)
            with _named():
                if local is not None:
                    if not Path(local).exists():
                        raise gone(local)
                    require_sound(local)
                    scans, fetch = _native.scan_pages([local], self._column), None
                else:
                    scans, fetch = [self._scan(file)], self._fetch
                self._indexes[file] = _native.PageIndex(_native.join_pages(self._column, scans), fetch)
        return self._indexes[file]

    def _scan(self, file: str) -> _native.PageScan:
        self._files[file] = opened(file, self._storage)
        size = self._files[file].size()
        return scan_file(file, size, self._column, lambda wanted: self._fetch([(file, wanted)])[0])

    def _fetch(self, asked: Sequence[tuple[str, Sequence[Range]]]) -> list[list[bytes]]:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="scattered-rows") as threads:
            reads = [
                [threads.submit(self._files[file].read_at, end - begin, begin) for begin, end in ranges]
                for file, ranges in asked
            ]
            return [[read.result() for read in of_file] for of_file in reads]


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """Turn errors of the native reader, which name file, column and page, into DamagedFile."""
    try:
        yield
    except ValueError as error:
        raise DamagedFile(str(error)) from error
