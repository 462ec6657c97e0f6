"""The locations of a column's pages in one Parquet file, read through any function that reads byte ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from factory import _native

Range = tuple[int, int]
"""The bytes from begin to end of a file."""
Fetch = Callable[[Sequence[tuple[str, Sequence[Range]]]], list[list[bytes]]]
"""Reads ranges of files that are not local: (path, ranges) in, their bytes out."""

_WINDOW = 1 << 20  # bytes per read of a file without an offset index, whose page headers must be read


def scan_file(
    path: str, n_bytes: int, column: str, read: Callable[[Sequence[Range]], list[bytes]]
) -> _native.PageScan:
    """The finished scan of one column of a file of `n_bytes`.

    Raises KeyError for a missing column, NotImplementedError for pages that cannot be read alone, ValueError
    for a damaged file, and the errors of `read`.
    """
    scan = _native.PageScan(path, n_bytes, column, _WINDOW)
    while wanted := scan.wanted():
        scan.push(read(wanted))
    return scan
