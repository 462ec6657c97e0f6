"""Single pages of any Parquet files, in any column: Youmu's three calls, and rows by number.

    matrix = get_idx_matrix(paths, "tokens")            # reads footers and offset indexes, no data
    for page in shuffle_index(matrix, seed=7):          # a keyed permutation; nothing is stored
        tokens = read_page(page)                        # pyarrow.Array: the rows of that page, read alone
    matrix.read_rows([17, 3, 3])                        # pyarrow.Array: rows, numbered over all files

After "Youmu: efficient columnar data pipeline for LLM training" (Zhong et al., 2025). Files of any writer are
read unchanged, with an offset index or without (then all page headers are read once), in any encoding,
uncompressed or in snappy, gzip, brotli, zstd or LZ4. Page checksums are verified if the writer stored them. A
column is named by its path in Parquet, `tokens` or `segments.list.element.length`, or by its top-level name
if it has one leaf. A nested column gives whole rows, such as lists; without an offset index its pages must be
of version 2, or one per row group, because other pages do not store their number of rows. Encrypted files,
LZO and columns of different types in different files are refused by name.

A matrix takes 0 to 8 bytes per page, and none for a row group with pages of equal sizes and rows. A saved
matrix (`IndexMatrix.save`) of any size is mapped into memory when opened (`open_idx_matrix`). Its files must
not change: a file of another length is refused, and so is a page that contradicts its header.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import pyarrow as pa
from obstore.exceptions import BaseError

from blender.errors import CorruptPage, InvalidBlend, InvalidRequest, SourceGone, UnsupportedPageLayout
from blender.parquet.page_ranges import StoreRanges
from blender.spec.permutation import Identity, Permutation, keyed
from blender.spec.shuffle import derive_key
from factory import _native
from factory.atomic_file import write_atomically
from factory.errors import ConfigurationError
from factory.lake.files.damage import planning
from factory.lake.files.page_scan import scan_file

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class Page:
    """One page of a matrix, for `read_page`."""

    matrix: IndexMatrix
    number: int
    """Numbered over all files."""

    @property
    def index(self) -> tuple[int, int, int]:
        """File, row group in the file, page in the row group."""
        return self.matrix.native.page(self.number)[:3]

    @property
    def first_row(self) -> int:
        """Its first row, numbered over all files."""
        return self.matrix.native.page(self.number)[3]

    @property
    def n_rows(self) -> int:
        """The number of its rows."""
        return self.matrix.native.page(self.number)[4]


class PageList(Sequence[Page]):
    """Pages of a matrix in an order that is computed on access; slices are orders too."""

    def __init__(self, matrix: IndexMatrix, order: Permutation, positions: range) -> None:
        self.matrix = matrix
        self._order = order
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Page: ...
    @overload
    def __getitem__(self, index: slice) -> PageList: ...
    def __getitem__(self, index: int | slice) -> Page | PageList:
        if isinstance(index, slice):
            return PageList(self.matrix, self._order, self._positions[index])
        return Page(self.matrix, int(self._order.forward(np.array([self._positions[index]]))[0]))

    def numbers(self) -> np.ndarray:
        """The pages' numbers as an int64 array of shape (len,)."""
        return self._order.forward(np.array(self._positions, dtype=np.int64))


class IndexMatrix(Sequence[Page]):
    """The global page index of Youmu: the location of every page of a column over all files.

    A sequence of pages; safe for many threads. It pickles its content, or its path if it was opened from one.
    """

    def __init__(self, content: pa.Array, ranges: StoreRanges | None = None, path: str | None = None) -> None:
        with _sentences():
            self.native = _native.PageIndex(content)
        self._content = content
        self._ranges = ranges
        self._path = path

    def __reduce__(self) -> tuple[object, ...]:
        if self._path is not None:
            return open_idx_matrix, (self._path, self._ranges)
        return IndexMatrix, (self._content, self._ranges)

    @property
    def column(self) -> str:
        """The column's name as given."""
        return self.native.column

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of a row."""
        return self.native.type

    @property
    def n_rows(self) -> int:
        """Rows in all files."""
        return self.native.n_rows

    @property
    def paths(self) -> list[str]:
        """The files, in the order of their rows."""
        return [self.native.path(number) for number in range(self.native.n_files)]

    def __len__(self) -> int:
        return self.native.n_pages

    @overload
    def __getitem__(self, index: int) -> Page: ...
    @overload
    def __getitem__(self, index: slice) -> PageList: ...
    def __getitem__(self, index: int | slice) -> Page | PageList:
        return PageList(self, Identity(), range(len(self)))[index]

    def page_of_row(self, row: int) -> Page:
        """The page that holds a row; raises InvalidRequest beyond the last row."""
        with _sentences():
            return Page(self, self.native.page_of_row(row))

    def read_pages(self, numbers: Sequence[int] | np.ndarray) -> list[pa.Array]:
        """The rows of each page, in the order given.

        Raises CorruptPage, SourceGone for an unreadable file, InvalidRequest for a missing page.
        """
        wanted = np.ascontiguousarray(numbers, dtype=np.int64)
        with _sentences():
            if self._ranges is None:
                return self.native.read_pages(wanted)
            return self._fetched(self._ranges, wanted)

    def read_rows(self, rows: Sequence[int] | np.ndarray) -> pa.Array:
        """The values of `rows` in the order given, with repeats; raises the errors of `read_pages`."""
        wanted = np.ascontiguousarray(rows, dtype=np.int64)
        with _sentences():
            if self._ranges is None:
                return self.native.read_rows(wanted)
            if len(wanted) == 0:
                return pa.array([], type=self.type)
            pages = np.array([self.native.page_of_row(int(row)) for row in wanted], dtype=np.int64)
            distinct, which = np.unique(pages, return_inverse=True)
            arrays = self._fetched(self._ranges, distinct)
            starts = np.cumsum([0, *(len(array) for array in arrays)])
            first = np.array([self.native.page(int(page))[3] for page in distinct], dtype=np.int64)
            return pa.concat_arrays(arrays).take(pa.array(wanted - first[which] + starts[which]))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matrix to a file for `open_idx_matrix`, replacing an existing file at once."""
        write_atomically(Path(path), memoryview(self._content.buffers()[1])[: len(self._content)])

    def _fetched(self, ranges: StoreRanges, numbers: np.ndarray) -> list[pa.Array]:
        """Pages of files in a store, by one call per file for pages and dictionaries."""
        wanted = [int(number) for number in numbers]
        files: dict[int, list[int]] = {}
        for position, number in enumerate(wanted):
            files.setdefault(self.native.page(number)[0], []).append(position)
        found: dict[int, pa.Array] = {}
        for file, positions in files.items():
            pairs = [self.native.byte_ranges(wanted[position]) for position in positions]
            dictionaries = sorted({dictionary for _, dictionary in pairs if dictionary[1]})
            answers = ranges.read(self.native.path(file), [*(page for page, _ in pairs), *dictionaries])
            by_range = dict(zip(dictionaries, answers[len(pairs) :], strict=True))
            for position, (_, dictionary), content in zip(positions, pairs, answers, strict=False):
                found[position] = self.native.decode(wanted[position], content, by_range.get(dictionary))
        return [found[position] for position in range(len(wanted))]


def get_idx_matrix(
    paths: Sequence[str | os.PathLike[str]], column: str, ranges: StoreRanges | None = None
) -> IndexMatrix:
    """The matrix of `column` over Parquet files, with rows numbered in the order of `paths`.

    With `ranges` the paths name objects of its store, otherwise local files. Raises ConfigurationError for a
    missing column, UnsupportedPageLayout for a file without readable pages, CorruptPage and SourceGone.
    """
    names = [os.fspath(path) for path in paths]
    with _sentences():
        if ranges is None:
            scans = _native.scan_pages(names, column)
        else:
            scans = [scan_file(name, ranges.size(name), column, partial(ranges.read, name)) for name in names]
        return IndexMatrix(_native.join_pages(column, scans), ranges)


def open_idx_matrix(path: str | os.PathLike[str], ranges: StoreRanges | None = None) -> IndexMatrix:
    """A saved matrix, mapped into memory; raises SourceGone for a missing file and CorruptPage."""
    with _sentences():
        content = pa.memory_map(os.fspath(path)).read_buffer()
        array = pa.Array.from_buffers(pa.uint8(), content.size, [None, content])
        try:
            return IndexMatrix(array, ranges, os.fspath(path))
        except CorruptPage as error:
            raise CorruptPage(f"{os.fspath(path)}: {error}") from error


def read_page(page: Page) -> pa.Array:
    """The rows of a page. Raises CorruptPage, and SourceGone for an unreadable file."""
    return page.matrix.read_pages([page.number])[0]


def shuffle_index(matrix: IndexMatrix, *, seed: int = 0, epoch: int = 0) -> PageList:
    """All pages in the order of one epoch; equal arguments give an equal order."""
    key = derive_key(seed=seed, epoch=epoch, level="page", source=matrix.column)
    order = keyed(len(matrix), key) if len(matrix) > 1 else Identity()
    return PageList(matrix, order, range(len(matrix)))


def data_files(table: Table, snapshot_id: int) -> list[str]:
    """The data files of an Iceberg snapshot by the names in the table, sorted.

    Raises InvalidBlend for a snapshot with deletes, which page reads would ignore.
    """
    with planning(table, table.snapshot_by_id(snapshot_id)):
        deletes = table.inspect.delete_files(snapshot_id=snapshot_id)
        tasks = list(table.scan(snapshot_id=snapshot_id).plan_files())
    for content, path in zip(deletes["content"].to_pylist(), deletes["file_path"].to_pylist(), strict=True):
        kind = "equality" if content == 2 else "position"
        raise InvalidBlend(
            f"Table {'.'.join(table.name())} has {kind} deletes at snapshot {snapshot_id} ({path}), which "
            "page reads ignore. Rewrite its data files first."
        )
    return sorted(task.file.file_path for task in tasks)


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Translate errors of the native reader and of stores into errors of this package."""
    try:
        yield
    except KeyError as error:
        raise ConfigurationError(str(error.args[0])) from error
    except NotImplementedError as error:
        raise UnsupportedPageLayout(str(error)) from error
    except ValueError as error:
        raise CorruptPage(str(error)) from error
    except IndexError as error:
        raise InvalidRequest(str(error)) from error
    except (OSError, BaseError) as error:
        raise SourceGone(str(error)) from error
