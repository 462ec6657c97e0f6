"""Byte ranges of a store's objects, ranges that lie close together in one request.

    wanted       [====]  [==]                      [=======]
    requests     [===========]                     [=======]      joined across gaps of at most `gap_bytes`

obstore joins the ranges, drops the bytes between them and sends up to ten requests at a time. It has no limit
for the length of a joined request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import obstore
from obstore.store import ObjectStore

from factory.lake.files.page_scan import Range


@dataclass(frozen=True)
class StoreRanges:
    """Reads ranges of a store's objects; safe for many threads."""

    store: ObjectStore
    gap_bytes: int = 16 << 10
    """Bytes between two ranges that cost less to read than a second request; touching ranges always join."""

    def size(self, path: str) -> int:
        """Bytes of an object; raises FileNotFoundError."""
        return int(obstore.head(self.store, path)["size"])

    def read(self, path: str, wanted: Sequence[Range]) -> list[bytes]:
        """The bytes of each wanted range; raises OSError, and FileNotFoundError for a missing object."""
        starts, ends = [begin for begin, _ in wanted], [end for _, end in wanted]
        found = obstore.get_ranges(self.store, path, starts=starts, ends=ends, coalesce=self.gap_bytes)
        return [bytes(memoryview(content)) for content in found]
