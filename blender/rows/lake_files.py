"""Bytes of a lake's data files, local or in a store.

The native reader reads local files itself. Ranges of a store's files come through `StoreRanges`, with the
credentials of the lake's settings; the files of one call are read concurrently.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlparse

import obstore
import pyarrow.parquet as pq

from blender.call_context import current_context
from blender.parquet.page_ranges import StoreRanges
from factory.lake.files.location import local_path
from factory.lake.files.page_scan import Fetch, Range
from factory.lake.store import bucket_store
from factory.settings import Settings

_LOCAL = ("/", "file:")
_THREADS = 16  # files read at a time; obstore requests the ranges of each together


class LakeFiles:
    """The files of the tables of one lake; safe for many threads."""

    def __init__(self, settings: Settings) -> None:
        self._store = lru_cache(maxsize=None)(lambda bucket: StoreRanges(bucket_store(settings, bucket)))
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="lake-files")

    def fetch_for(self, paths: Iterable[str]) -> Fetch | None:
        """The function that reads ranges of these files; None if all are local."""
        return None if all(path.startswith(_LOCAL) for path in paths) else self.fetch

    def fetch(self, asked: Sequence[tuple[str, Sequence[Range]]]) -> list[list[bytes]]:
        """The bytes of ranges of files, by file.

        Raises the errors of obstore and the system, and Stalled for a file that misses the call's deadline.
        """
        began, call = time.monotonic(), current_context()
        reads = [self._threads.submit(self.read, *one) for one in asked]

        def late() -> str:
            paths = [path for (path, _), read in zip(asked, reads, strict=True) if not read.done()]
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            return (
                f"File {paths[0]}{more} did not come from its store in {time.monotonic() - began:.1f} s. "
                "Check the store, or ask again with a longer deadline."
            )

        return [call.result(read, late) for read in reads]

    def read(self, path: str, ranges: Sequence[Range]) -> list[bytes]:
        """The bytes of ranges of one file."""
        local = local_path(path)
        if local is not None:
            with Path(local).open("rb") as file:
                return [os.pread(file.fileno(), end - begin, begin) for begin, end in ranges]
        address = urlparse(path)
        found: list[bytes] = self._store(address.netloc).read(address.path.lstrip("/"), ranges)
        return found

    def names(self, path: str) -> list[str]:
        """The top-level columns of a file, from its footer."""
        address = urlparse(path)
        local = local_path(path)
        if local is not None:
            return list(pq.read_schema(local).names)
        file = obstore.open_reader(self._store(address.netloc).store, address.path.lstrip("/"))
        return list(pq.read_schema(file).names)
