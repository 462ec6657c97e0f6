"""The states in which files lie in the page cache: what a read of them costs depends on it.

Linux caches a file that is read in order in large folios and maps many of its pages at a fault. A file that
was faulted in at random lies there page by page, and each first touch of a page through a map costs a fault:
the same rows cost numpy's map three times as much. Both are common, so benches against maps measure both.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np


def drop(files: Iterable[Path]) -> None:
    """Drop files from the page cache."""
    for path in files:
        with path.open("rb") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_in_order(files: Iterable[Path]) -> None:
    """Bring files into the page cache anew, each from its beginning to its end."""
    files = list(files)
    drop(files)
    part = bytearray(1 << 22)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(part):
                pass


def read_scattered(files: Iterable[Path]) -> None:
    """Bring files into the page cache anew, page by page in random order, as random reads of a map do."""
    files = [path for path in files if path.stat().st_size]
    drop(files)
    for path in files:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
            pages.madvise(mmap.MADV_RANDOM)
            starts = np.arange(0, len(pages), mmap.PAGESIZE)
            for start in np.random.default_rng(0).permutation(starts).tolist():
                pages[start]
