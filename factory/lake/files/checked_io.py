"""PyIceberg's file system of an embedded lake, which verifies checksums on read and writes them.

PyIceberg knows neither the checksum files of Hadoop's local file system nor, by itself, the checksums that
Parquet pages carry. `CheckedFileIO`, named in the catalog's properties (`factory.lake.catalog`), handles
checksum files. `check_pages` handles pages: it patches how PyIceberg opens and writes Parquet, because
PyIceberg has no option for it.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyiceberg.io.pyarrow as arrow_io
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.manifest import FileFormat

from factory.lake.files.checksums import FileSums
from factory.lake.files.parquet import require_sound

_file_format = arrow_io._get_file_format
_writer_options = arrow_io._get_parquet_writer_kwargs


class CheckedFileIO(PyArrowFileIO):
    """Local files with the checksums of `factory.lake.files.checksums`."""

    def new_input(self, location: str) -> PyArrowFile:
        """A file to read; opening it raises DamagedFile if its bytes have changed."""
        return self._of(super().new_input(location))

    def new_output(self, location: str) -> PyArrowFile:
        """A file to write; closing it writes its checksum file."""
        return self._of(super().new_output(location))

    def _of(self, file: PyArrowFile) -> PyArrowFile:
        return _CheckedFile(file.location, file._path, file._filesystem)


class _CheckedFile(PyArrowFile):
    def open(self, seekable: bool = True) -> pa.NativeFile:
        opened = super().open(seekable)
        try:
            require_sound(self._path)
        except BaseException:
            opened.close()
            raise
        return opened

    def create(self, overwrite: bool = False) -> _Output:
        return _Output(self._path, super().create(overwrite))


class _Output(io.RawIOBase):
    """A stream that computes checksums of the bytes written to it."""

    def __init__(self, path: str, stream: pa.NativeFile) -> None:
        self._path, self._stream, self._sums = path, stream, FileSums()

    def write(self, content: Any) -> int:
        """Write bytes, or an object that lends them; return their number."""
        lent = memoryview(content).cast("B")
        self._stream.write(lent)
        self._sums.add(lent)
        return len(lent)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return int(self._stream.tell())

    def writable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Hand the bytes written so far to the system."""
        if not self.closed:
            self._stream.flush()

    def __del__(self) -> None:
        """Leave an abandoned file without checksums; the base class would close it as if it were whole."""

    def close(self) -> None:
        """Complete the file and its checksums."""
        if not self.closed:
            super().close()
            self._stream.close()
            self._sums.put(self._path)


@lru_cache
def _checking(file_format: FileFormat, **options: Any) -> ds.FileFormat:
    if file_format != FileFormat.PARQUET:
        return _file_format(file_format, **options)
    return ds.ParquetFileFormat(page_checksum_verification=True, **options)


def check_pages() -> None:
    """Let PyIceberg verify and write checksums of Parquet pages, everywhere in this process."""
    arrow_io._get_file_format = _checking
    arrow_io._get_parquet_writer_kwargs = lambda properties: {
        **_writer_options(properties),
        "write_page_checksum": True,
    }
