"""Parquet files opened so that a damaged page raises an error with file, column and page.

Every reader that uses pyarrow opens files with `open_parquet` and reads them within `reading`. Pyarrow's
errors name neither file nor column, so the pages are then read one by one (`native/src/pages`).
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from factory import _native
from factory.errors import DamagedFile, MachineError
from factory.lake.files.checksums import require_whole
from factory.lake.files.page_scan import Range, scan_file

UNREADABLE = (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError)
"""What pyarrow raises for bytes that are not Parquet, or not the bytes that were written."""
_UNSUPPORTED = (NotImplementedError, MemoryError, pa.ArrowCapacityError)
"""Those of them that pyarrow also raises for whole files."""
_ROWS = 1024  # that the search for damage decodes together


def require_sound(path: str) -> None:
    """Raise DamagedFile if a local file differs from its checksum file; name the page of a Parquet file."""
    try:
        require_whole(path)
    except DamagedFile:
        if path.endswith(".parquet"):
            with pa.OSFile(path) as file:
                sentence = fault(path, ("*",), file)
            if sentence is not None:
                raise DamagedFile(sentence) from None
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

    `opened` reopens the file to find the page. System errors pass through, except for a missing file. Raises
    MachineError if the file turns out to be whole, as after a store that did not answer.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise gone(name) from error
    except UNREADABLE as error:
        with opened() as file:
            sentence = fault(name, columns, file)
        if sentence is not None:
            raise DamagedFile(sentence) from error
        raise_undamaged(f"File {name}", error)


def gone(name: str) -> DamagedFile:
    """Return the error for a missing file."""
    return DamagedFile(f"File {name} is gone. Restore it, or make its table again: factory materialize.")


def raise_undamaged(what: str, error: BaseException) -> NoReturn:
    """Raise the error for `what` that could not be read, although `fault` finds no damage in it.

    MachineError for errors of the bytes, which may come from a store that did not answer; else `error`.
    """
    if isinstance(error, pa.ArrowInvalid) or (isinstance(error, OSError) and error.errno is None):
        raise MachineError(
            f"{what} could not be read ({_sentence_of(error)}), although a second look found no damage. "
            "Try again; if it fails again, check the store, the disk and the memory of the machine."
        ) from error
    raise error


def unread(name: str, error: BaseException) -> str:
    """Return a sentence with pyarrow's error about a file that is not Parquet as a whole."""
    return f"File {name} cannot be read as Parquet: {_sentence_of(error)}. Restore it, or write it anew."


def _sentence_of(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def fault(name: str, columns: Sequence[str], file: pa.NativeFile, row_group: int | None = None) -> str | None:
    """Return a sentence on the first damage in `columns` (`*` means all), None if pyarrow reads them.

    Only what pyarrow cannot read is damage, so that a feature which the native reader lacks never accuses a
    whole file. The native reader then finds the page. `row_group` restricts the search to its pages. Raises
    OSError if the file's bytes cannot be fetched.
    """
    source = _Source(file)
    try:
        parquet = open_parquet(source, pre_buffer=False)
        names = [column for column in parquet.schema_arrow.names if column in columns or "*" in columns]
    except UNREADABLE as error:
        source.raise_failure()
        return None if isinstance(error, NotImplementedError) else unread(name, error)
    groups = range(parquet.num_row_groups) if row_group is None else [row_group]
    for column, group in itertools.product(names, groups):
        try:
            batches = parquet.iter_batches(_ROWS, row_groups=[group], columns=[column], use_threads=False)
            n_rows, declared = (
                sum(batch.num_rows for batch in batches),
                parquet.metadata.row_group(group).num_rows,
            )
            if n_rows != declared:
                raise pa.ArrowInvalid(f"its pages hold {n_rows:,} rows, its footer says {declared:,}")
        except UNREADABLE as error:
            source.raise_failure()
            sentence = _damaged_page(name, _leaves(parquet, column), file, group)
            if sentence is None and not isinstance(error, _UNSUPPORTED):
                sentence = (
                    f"File {name}, column `{column}`, row group {group}: {_sentence_of(error)}. "
                    "Restore or rewrite the file."
                )
            if sentence is not None:
                return sentence
    return None


class _Source(io.RawIOBase):
    """A file that remembers why it could not be read: pyarrow raises OSError for damaged bytes too."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._failure: OSError | None = None

    def raise_failure(self) -> None:
        """Raise the error of the last read that failed, if one did."""
        if self._failure is not None:
            raise self._failure

    def readable(self) -> bool:
        """Return True."""
        return True

    def read(self, n_bytes: int = -1) -> bytes:
        """Return the next bytes, all that are left if `n_bytes` is negative."""
        try:
            return bytes(self._file.read(n_bytes if n_bytes >= 0 else None))
        except OSError as error:
            self._failure = error
            raise

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte and return its offset."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return int(self._file.tell())


def _leaves(parquet: pq.ParquetFile, column: str) -> list[str]:
    """Return the full names of the leaves of a top-level column, such as `metadata.key_value.key`."""
    paths = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    return [path for path in paths if path == column or path.startswith(f"{column}.")]


def _damaged_page(name: str, leaves: Sequence[str], file: pa.NativeFile, row_group: int) -> str | None:
    """Return the native reader's sentence on the first page it cannot read of a row group, else None."""
    for leaf in leaves:
        try:
            _read_pages(name, leaf, file, row_group)
        except ValueError as error:
            return str(error)
        except (NotImplementedError, LookupError):  # pages that cannot be read alone
            continue
    return None


def _read_pages(name: str, leaf: str, file: pa.NativeFile, row_group: int) -> None:
    def read(ranges: Sequence[Range]) -> list[bytes]:
        return [file.read_at(end - begin, begin) for begin, end in ranges]

    scan = scan_file(name, file.size(), leaf, read)
    index = _native.PageIndex(
        _native.join_pages(leaf, [scan]), lambda asked: [read(ranges) for _, ranges in asked]
    )
    for number in range(index.n_pages):
        if index.page(number)[1] == row_group:
            index.read_pages(np.array([number]))
