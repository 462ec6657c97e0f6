"""How far a live source was read, as it is kept beside the blend: a snapshot, and the files it had.

Of a file 16 bytes are kept, a hash of its path, for a path is never given to another file: a record of ten
thousand files takes 160 KB. By them the rows that were read are known again where their snapshot has expired.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

_HASH_BYTES = 16


@dataclass(frozen=True, order=True)
class LiveProgress:
    """Rows that were there at a snapshot; the greater of two was seen later, by whomever.

    `files` are hashes of paths, None where none were kept.
    """

    rows: int
    sequence: int
    """Of the snapshot, whose id says nothing of its time: a compaction leaves the rows and comes later."""
    snapshot: int
    files: frozenset[bytes] | None = field(default=None, compare=False)

    def content(self) -> bytes:
        """The files, as they are kept."""
        return b"".join(sorted(self.files or ()))


def hashes(paths: Iterable[str]) -> frozenset[bytes]:
    """Of the paths of files."""
    return frozenset(hashlib.blake2b(path.encode(), digest_size=_HASH_BYTES).digest() for path in paths)


def from_content(content: bytes) -> frozenset[bytes] | None:
    """The inverse of `LiveProgress.content`; None where it has no file, or no whole ones."""
    if not content or len(content) % _HASH_BYTES:
        return None
    return frozenset(content[at : at + _HASH_BYTES] for at in range(0, len(content), _HASH_BYTES))
