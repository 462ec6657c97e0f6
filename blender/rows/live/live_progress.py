"""How far a live source was read: a snapshot and its files, recorded with the blend.

The record keeps a 16-byte hash of each file's path, since no two files ever share a path: ten thousand files
take 160 KB. These hashes identify the files already read after their snapshot has expired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

_HASH_BYTES = 16


@dataclass(frozen=True, order=True)
class LiveProgress:
    """The rows and files of a snapshot. The greater of two records is the later one.

    `files` are hashes of paths; None in a record without files.
    """

    rows: int
    sequence: int
    """The snapshot's sequence number: ids are in no order, and a compaction keeps the number of rows."""
    snapshot: int
    files: frozenset[bytes] | None = field(default=None, compare=False)

    def content(self) -> bytes:
        """The stored form of the files."""
        return to_content(self.files or ())


def hashes(paths: Iterable[str]) -> frozenset[bytes]:
    """Hashes of file paths."""
    return frozenset(map(hash_of, paths))


def hash_of(path: str) -> bytes:
    """The hash of a file's path."""
    return hashlib.blake2b(path.encode(), digest_size=_HASH_BYTES).digest()


def to_content(hashes: Iterable[bytes]) -> bytes:
    """The stored form of hashes."""
    return b"".join(sorted(hashes))


def from_content(content: bytes) -> frozenset[bytes] | None:
    """The inverse of `to_content`; None if it has no files or an incomplete hash."""
    if not content or len(content) % _HASH_BYTES:
        return None
    return frozenset(content[start : start + _HASH_BYTES] for start in range(0, len(content), _HASH_BYTES))
