"""Find pages of a table's files with row counts that differ from the table's properties.

    write.parquet.page-row-limit                   8      rows a page, the last of a row group may have fewer
    write.parquet.row-group-check-min-record-count 8      parquet-mr looks at pages for the first time after
                                                          so many rows: by default a row group begins with a
                                                          page of 100, and shorter ones are one page

Blender reads windows of rows, which needs pages of all columns to end at the same rows. Only footers and
offset indexes are read, or page headers if a writer left no offset index.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from factory import _native
from factory.lake.files.damage import planning
from factory.lake.files.page_scan import scan_file

if TYPE_CHECKING:
    from pyiceberg.io import InputFile, InputStream
    from pyiceberg.table import Table

PAGE_ROWS = "write.parquet.page-row-limit"
FIRST_LOOK = "write.parquet.row-group-check-min-record-count"

_MAX_SHOWN = 3  # columns named per file
_THREADS = 16  # files inspected at a time


def odd_pages(table: Table, snapshot_id: int) -> list[str]:
    """Return a sentence for each file with odd pages; none if the table's properties set no page size."""
    limit = int(table.properties.get(PAGE_ROWS, 0))
    if not limit:
        return []
    with planning(table, table.snapshot_by_id(snapshot_id)):
        files = sorted(task.file.file_path for task in table.scan(snapshot_id=snapshot_id).plan_files())
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="layout") as threads:
        found = threads.map(lambda path: _of_file(table.io.new_input(path), limit), files)
        return [sentence for sentence in found if sentence]


class _Bytes:
    """Byte ranges of an open file; its end, with the footer, is read once for all columns."""

    def __init__(self, path: str, source: InputStream, size: int) -> None:
        self.path, self.size = path, size
        self._source = source
        self._ends: dict[int, bytes] = {}

    def read(self, begin: int, end: int) -> bytes:
        if end < self.size:
            return self._read(begin, end)
        if begin not in self._ends:
            self._ends[begin] = self._read(begin, end)
        return self._ends[begin]

    def _read(self, begin: int, end: int) -> bytes:
        self._source.seek(begin)
        return self._source.read(end - begin)


def _of_file(file: InputFile, limit: int) -> str:
    with file.open() as source:
        schema = pq.ParquetFile(source).schema
        leaves = [schema.column(number).path for number in range(len(schema))]
        ranges = _Bytes(file.location, source, len(file))
        odd = [sentence for leaf in leaves if (sentence := _of_column(ranges, leaf, limit))]
    if not odd:
        return ""
    more = f"; and {len(odd) - _MAX_SHOWN} more columns" if len(odd) > _MAX_SHOWN else ""
    return (
        f"File {file.location} has pages of other than {limit:,} rows: {'; '.join(odd[:_MAX_SHOWN])}{more}. "
        f"Set `{FIRST_LOOK}` of the table to {limit}, and write it again through Spark."
    )


def _of_column(file: _Bytes, leaf: str, limit: int) -> str:
    try:
        index = _index(file, leaf)
    except NotImplementedError:
        return f"`{leaf}` does not say how many rows its pages have"
    odd = _odd(index, limit)
    if not odd:
        return ""
    group, page, n_rows = odd[0]
    first = f"the first is page {page} of row group {group} with {n_rows:,} rows"
    return f"`{leaf}` has {len(odd):,} of {index.n_pages:,}, {first}"


def _index(file: _Bytes, leaf: str) -> _native.PageIndex:
    scan = scan_file(
        file.path, file.size, leaf, lambda wanted: [file.read(begin, end) for begin, end in wanted]
    )
    return _native.PageIndex(_native.join_pages(leaf, [scan]))


def _odd(index: _native.PageIndex, limit: int) -> list[tuple[int, int, int]]:
    """Return (row group, page, rows) of every page without `limit` rows, except a shorter last page."""
    odd, following = [], None
    for number in reversed(range(index.n_pages)):
        _, group, page, _, n_rows = index.page(number)
        if n_rows > limit or (n_rows < limit and group == following):
            odd.append((group, page, n_rows))
        following = group
    return odd[::-1]
