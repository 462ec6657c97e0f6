"""Parquet files opened so that a damaged page raises an error with file, column and page.

Every reader that uses pyarrow opens files with `open_parquet` and reads them within `reading`. Pyarrow's
errors name neither file nor column, so the pages are then read one by one (`native/src/pages`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from factory import _native
from factory.errors import DamagedFile
from factory.lake.files.checksums import require_whole
from factory.lake.files.page_scan import Range, scan_file

UNREADABLE = (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError)
"""What pyarrow raises for bytes that are not Parquet, or not the bytes that were written."""


def require_sound(path: str) -> None:
    """Raise DamagedFile if a local file differs from its checksum file; name the page of a Parquet file."""
    try:
        require_whole(path)
    except DamagedFile:
        if path.endswith(".parquet"):
            with pa.OSFile(path) as file:
                said = fault(path, ("*",), file)
            if said is not None:
                raise DamagedFile(said) from None
        raise


def open_parquet(file: str | pa.NativeFile | BinaryIO, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file, by path or as an open file, with page checksums verified on read.

    A path with a checksum file is verified whole; raises DamagedFile.
    """
    if isinstance(file, str):
        require_sound(file)
    return pq.ParquetFile(file, page_checksum_verification=True, **options)


@contextlib.contextmanager
def reading(name: str, columns: Sequence[str], opened: Callable[[], pa.NativeFile]) -> Iterator[None]:
    """Turn pyarrow's errors while reading `columns` of file `name` into DamagedFile.

    `opened` reopens the file to find the page. System errors, such as a store that does not answer, pass
    through, except for a missing file.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise gone(name) from error
    except UNREADABLE as error:
        with opened() as file:
            said = fault(name, columns, file)
        if said is None and isinstance(error, OSError) and error.errno is not None:
            raise
        raise DamagedFile(said or unread(name, columns, error)) from error


def gone(name: str) -> DamagedFile:
    """Return the error for a missing file."""
    return DamagedFile(f"File {name} is gone. Restore it, or make its table again: factory materialize.")


def unread(name: str, columns: Sequence[str], error: BaseException) -> str:
    """Return a sentence with pyarrow's error about a file whose pages are all readable."""
    of = f", of which {', '.join(f'`{column}`' for column in columns)} was asked for," if columns else ""
    said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return f"File {name}{of} cannot be read as Parquet: {said}. Restore it, or write it anew."


def fault(name: str, columns: Sequence[str], file: pa.NativeFile, row_group: int | None = None) -> str | None:
    """Return a sentence on the first unreadable page of `columns`, None if all pages are readable.

    `row_group` restricts the search to its pages.
    """
    size = file.size()
    try:
        schema = pq.ParquetFile(file).schema
        leaves = [schema.column(number).path for number in range(len(schema))]
    except UNREADABLE as error:
        return unread(name, (), error)
    for leaf in leaves:
        if leaf.partition(".")[0] in columns or "*" in columns:
            try:
                _read_pages(name, leaf, size, file, row_group)
            except ValueError as error:
                return str(error)
            except (NotImplementedError, LookupError):  # pages that cannot be read alone
                continue
    return None


def _read_pages(name: str, leaf: str, size: int, file: pa.NativeFile, row_group: int | None) -> None:
    def read(ranges: Sequence[Range]) -> list[bytes]:
        return [file.read_at(end - begin, begin) for begin, end in ranges]

    scan = scan_file(name, size, leaf, read)
    index = _native.PageIndex(
        _native.join_pages(leaf, [scan]), lambda asked: [read(ranges) for _, ranges in asked]
    )
    for number in range(index.n_pages):
        if row_group is None or index.page(number)[1] == row_group:
            index.read_pages(np.array([number]))
