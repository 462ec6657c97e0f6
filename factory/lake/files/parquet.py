"""Parquet files opened so that a damaged page is an error, which names file, column and page.

Every reader here that uses pyarrow opens its files with `open_parquet`, and reads them within `reading`. What
pyarrow says of a page that is not as it was written names neither the file nor the column, so the pages are
then looked at one by one (`native/src/pages`), which tells where it is.
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
"""What pyarrow raises for bytes that are no Parquet, or not those that were written."""


def require_sound(path: str) -> None:
    """Raise DamagedFile where a local file is not as checksums beside it say; of Parquet with the page."""
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
    """A Parquet file, a local path or an open file, whose pages are held against their checksums when read.

    Of a path the whole file is, where checksums of it lie beside it: raises DamagedFile.
    """
    if isinstance(file, str):
        require_sound(file)
    return pq.ParquetFile(file, page_checksum_verification=True, **options)


@contextlib.contextmanager
def reading(name: str, columns: Sequence[str], opened: Callable[[], pa.NativeFile]) -> Iterator[None]:
    """Turn what pyarrow raises while it reads `columns` of the file called `name` into DamagedFile.

    `opened` opens the file once more. An error of the system, such as a store that does not answer, stays as
    it is, but for a file that is gone.
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
    """The error for a file that is not there."""
    return DamagedFile(f"File {name} is gone. Restore it, or make its table anew: factory materialize.")


def unread(name: str, columns: Sequence[str], error: BaseException) -> str:
    """A sentence with what pyarrow said of a file whose pages each can be read."""
    of = f", of which {', '.join(f'`{column}`' for column in columns)} was asked for," if columns else ""
    said = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return f"File {name}{of} cannot be read as Parquet: {said}. Restore it, or write it anew."


def fault(name: str, columns: Sequence[str], file: pa.NativeFile, row_group: int | None = None) -> str | None:
    """A sentence on the first page of `columns` in an open file that cannot be read; None if each can be.

    Of a `row_group` only its pages are looked at.
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
            except (NotImplementedError, LookupError):  # pages that cannot be read alone, or told by name
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
