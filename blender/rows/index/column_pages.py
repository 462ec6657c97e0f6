"""The pages of one column over all data files of a snapshot, with rows numbered over the files in order.

Files that agree on the type of the column share an index, and nearly every snapshot has one type only. Rows
of a file without the column are in no index and are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.errors import UnsupportedPageLayout
from blender.rows.index.index_files import IndexFiles, is_whole
from blender.rows.lake_files import LakeFiles
from blender.rows.snapshot_files import TableFile
from factory import _native
from factory.lake.files.location import local_path
from factory.lake.files.page_scan import Fetch, scan_file
from factory.lake.files.parquet import require_sound

Ints = npt.NDArray[np.int64]

_THREADS = 16  # files of a store scanned at a time


@dataclass(frozen=True)
class Group:
    """Files that agree on the type of the column."""

    index: _native.PageIndex
    files: Ints
    """Their numbers in the snapshot, ascending."""


class ColumnPages:
    """The pages of a column of a snapshot."""

    def __init__(self, groups: Sequence[Group], n_rows: Sequence[int]) -> None:
        """`n_rows` has the rows of every file of the snapshot."""
        self.groups = tuple(groups)
        self._whole = len(groups) == 1 and len(groups[0].files) == len(n_rows)
        if self._whole:
            return
        self._start = np.concatenate([[0], np.cumsum(np.asarray(n_rows, dtype=np.int64))])[:-1]
        self._group = np.full(len(n_rows), -1)
        self._shift = np.zeros(len(n_rows), dtype=np.int64)  # from a row of the snapshot to one of its index
        for number, group in enumerate(groups):
            rows = np.asarray(n_rows, dtype=np.int64)[group.files]
            self._group[group.files] = number
            self._shift[group.files] = np.cumsum(rows) - rows - self._start[group.files]

    def parts(self, rows: Ints, positions: Ints) -> list[tuple[_native.PageIndex, Ints, Ints]]:
        """For each index, its rows among `rows` and their positions; null rows are left out."""
        if self._whole:
            return [(self.groups[0].index, rows, positions)]
        file = np.searchsorted(self._start, rows, side="right") - 1
        of, shifted, found = self._group[file], rows + self._shift[file], []
        for number, group in enumerate(self.groups):
            chosen = np.flatnonzero(of == number)
            if len(chosen):
                found.append((group.index, shifted[chosen], positions[chosen]))
        return found


def column_pages(
    indexes: IndexFiles, data_files: LakeFiles, snapshot: str, files: Sequence[TableFile], column: str
) -> ColumnPages:
    """The pages of `column`, from the page index or else from the files' footers; run it inside `reading`."""
    fetch = data_files.fetch_for(file.path for file in files)
    whole = indexes.open_index(indexes.column_of_snapshot(snapshot, column, "pages"), fetch)
    if whole is not None:
        kept: list[Group] | None = [Group(whole, np.arange(len(files)))]
    else:
        kept = _kept(indexes, snapshot, column, fetch)
    if kept is None:
        kept = _index(indexes, data_files, snapshot, files, column, fetch)
    return ColumnPages(kept, [file.n_rows for file in files])


def scans(data_files: LakeFiles, files: Sequence[TableFile], column: str) -> list[_native.PageScan | None]:
    """A finished scan of each file; None for a file without the column."""
    local = [local_path(file.path) for file in files]
    paths = [path for path in local if path is not None]
    for path in paths:
        if Path(path).exists():  # the scan reports a missing file
            require_sound(path)
    try:
        of_local = iter(_native.scan_pages(paths, column))
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="page-scans") as threads:
            of_stores = threads.map(
                lambda file: _scan(data_files, file, column),
                [file for file, path in zip(files, local, strict=True) if path is None],
            )
            return [next(of_stores) if path is None else next(of_local) for path in local]
    except KeyError:
        return [_scan_or_none(data_files, file, column) for file in files]


def _index(
    indexes: IndexFiles,
    data_files: LakeFiles,
    snapshot: str,
    files: Sequence[TableFile],
    column: str,
    fetch: Fetch | None,
) -> list[Group]:
    try:
        groups = _joined(_of_files(indexes, data_files, files, column))
    except ValueError:  # a damaged entry of a file's index: joining reads all entries
        _discard_of_files(indexes, files, column)
        groups = _joined(_of_files(indexes, data_files, files, column))
    indexed = []
    whole = len(groups) == 1 and len(groups[0][0]) == len(files)
    for number, (numbers, content) in enumerate(groups):
        end = "pages" if whole else f"{number}.pages"
        indexes.put_index(indexes.column_of_snapshot(snapshot, column, end), content)
        indexed.append(Group(_native.PageIndex(content, fetch), np.array(numbers, dtype=np.int64)))
    if not whole:
        record = indexes.column_of_snapshot(snapshot, column, "json")
        indexes.put_record(record, [numbers for numbers, _ in groups])
    return indexed


def _kept(indexes: IndexFiles, snapshot: str, column: str, fetch: Fetch | None) -> list[Group] | None:
    numbers = indexes.get_record(indexes.column_of_snapshot(snapshot, column, "json"))
    if numbers is None:
        return None
    found = []
    for number, of_group in enumerate(numbers):
        path = indexes.column_of_snapshot(snapshot, column, f"{number}.pages")
        index = indexes.open_index(path, fetch)
        if index is None:
            return None
        found.append(Group(index, np.array(of_group, dtype=np.int64)))
    return found


def _of_files(
    indexes: IndexFiles, data_files: LakeFiles, files: Sequence[TableFile], column: str
) -> list[pa.UInt8Array | None]:
    """The content of every file's index, scanned if not stored; None for a file without the column."""
    paths = [indexes.of_file(file, column) for file in files]
    found = [indexes.get_index(path) if indexes.open_index(path) is not None else None for path in paths]
    missing = [number for number, content in enumerate(found) if content is None]
    for number, scan in zip(missing, scans(data_files, [files[it] for it in missing], column), strict=True):
        if scan is not None:
            found[number] = _native.join_pages(column, [scan])
            indexes.put_index(paths[number], found[number])
    return found


def discard_damaged(
    indexes: IndexFiles, snapshot: str, files: Sequence[TableFile], column: str, kept: ColumnPages
) -> bool:
    """Drop the damaged indexes of an open column from disk; whether there were any."""
    if all(is_whole(group.index) for group in kept.groups):
        return False
    for end in ("pages", *(f"{number}.pages" for number in range(len(kept.groups)))):
        indexes.discard(indexes.column_of_snapshot(snapshot, column, end))
    _discard_of_files(indexes, files, column)
    return True


def _discard_of_files(indexes: IndexFiles, files: Sequence[TableFile], column: str) -> None:
    for file in files:
        path = indexes.of_file(file, column)
        index = indexes.open_index(path)
        if index is not None and not is_whole(index):
            indexes.discard(path)


def _joined(contents: Sequence[pa.UInt8Array | None]) -> list[tuple[list[int], pa.UInt8Array]]:
    """For each type of the column, the files with it and their joined index."""
    groups: dict[str, tuple[list[int], list[pa.UInt8Array]]] = {}
    for number, content in enumerate(contents):
        if content is not None:
            numbers, of_group = groups.setdefault(str(_native.PageIndex(content).type), ([], []))
            numbers.append(number)
            of_group.append(content)
    return [
        (numbers, of_group[0] if len(of_group) == 1 else _native.join_indexes(of_group))
        for numbers, of_group in groups.values()
    ]


def _scan(data_files: LakeFiles, file: TableFile, column: str) -> _native.PageScan:
    local = local_path(file.path)
    if local is not None:
        return _native.scan_pages([local], column)[0]
    return scan_file(file.path, file.n_bytes, column, partial(data_files.read, file.path))


def _scan_or_none(data_files: LakeFiles, file: TableFile, column: str) -> _native.PageScan | None:
    try:
        return _scan(data_files, file, column)
    except KeyError as error:
        top = column.split(".")[0]
        if top in data_files.names(file.path):
            raise UnsupportedPageLayout(
                f"{error.args[0]} Iceberg's own writers use other names below `{top}`. Write the file again."
            ) from error
        return None
