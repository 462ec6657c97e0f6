"""The state of an input: one hash of the names, sizes and times of its files, without reading them.

A source records the state that it read, and the sensor compares it with the state on disk.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path


def state(paths: Iterable[str | Path]) -> str:
    """Hash the names, sizes and times of all files at and below `paths`; links below are not followed."""
    digest = hashlib.blake2b(digest_size=8)
    files = (file for path in paths for file in _files(os.fsencode(Path(path).resolve())))
    for name, size, changed_ns in sorted(files):
        digest.update(b"%s\0%d\0%d\0" % (name, size, changed_ns))
    return digest.hexdigest()


def _files(path: bytes) -> Iterator[tuple[bytes, int, int]]:
    try:
        status = os.lstat(path)
        below = [entry.path for entry in os.scandir(path)] if stat.S_ISDIR(status.st_mode) else []
    except OSError:  # vanished since the listing, or not readable: the run will report it
        yield path, -1, 0
        return
    if not stat.S_ISDIR(status.st_mode):
        yield path, status.st_size, status.st_mtime_ns
    for name in below:
        yield from _files(name)
