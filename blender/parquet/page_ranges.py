"""Byte ranges of objects, read with as few requests as a caller allows.

    wanted       [====]  [==]                      [=======]
    requests     [===========]                     [=======]      joined where the gap is small enough

Two ranges that lie at most `gap_bytes` apart become one request of at most `request_bytes`; what lies between
is read and thrown away. With a gap of zero exactly the wanted bytes are read, touching ranges together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import obstore
from obstore.store import ObjectStore

Range = tuple[int, int]


@dataclass(frozen=True)
class Request:
    """One range to ask for, and the wanted ranges (by number) that lie in it."""

    begin: int
    end: int
    holds: tuple[int, ...]


def requests(wanted: Sequence[Range], *, gap_bytes: int, request_bytes: int) -> list[Request]:
    """The requests for `wanted`, ascending; a wanted range is never cut, however long it is."""
    made: list[Request] = []
    for number in sorted(range(len(wanted)), key=lambda it: wanted[it]):
        begin, end = wanted[number]
        if made:
            last = made[-1]
            joined = max(last.end, end)
            if begin <= last.end + gap_bytes and (joined == last.end or joined - last.begin <= request_bytes):
                made[-1] = Request(last.begin, joined, (*last.holds, number))
                continue
        made.append(Request(begin, end, (number,)))
    return made


@dataclass(frozen=True)
class StoreRanges:
    """Reads ranges of a store's objects; safe for many threads."""

    store: ObjectStore
    gap_bytes: int = 16 << 10
    """Bytes between two pages that are cheaper to read than to ask for separately."""
    request_bytes: int = 8 << 20
    """Longest joined request."""

    def size(self, path: str) -> int:
        """Bytes of an object; raises FileNotFoundError."""
        return int(obstore.head(self.store, path)["size"])

    def read(self, path: str, wanted: Sequence[Range]) -> list[bytes]:
        """What `wanted` hold, in its order; raises OSError, or FileNotFoundError for no such object."""
        asked = requests(wanted, gap_bytes=self.gap_bytes, request_bytes=self.request_bytes)
        answers = obstore.get_ranges(
            self.store, path, starts=[it.begin for it in asked], ends=[it.end for it in asked], coalesce=0
        )
        found: list[bytes] = [b""] * len(wanted)
        for request, answer in zip(asked, answers, strict=True):
            bytes_there = memoryview(answer)
            for number in request.holds:
                begin, end = wanted[number]
                found[number] = bytes(bytes_there[begin - request.begin : end - request.begin])
        return found
