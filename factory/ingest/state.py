"""The state of an input: the names, sizes and times of its files, without reading them.

A source records the state that it read. The sensor and `--changed` compare it with the state on disk, and a
listing tells which files differ:

    before = listing(["notes"])                  # then a file is added
    listing(["notes"]).state == before.state     # False
    differences(before, listing(["notes"]))      # ["+1 new.txt"]
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factory.counted import counted

MOST_BYTES = 16_384  # of the listings of a snapshot, which stand in its summary: some 1,000 files
SETTLED_NS = 2 * 10**9  # the coarsest time of a file system; a later change may leave the time as it was
_SHOWN = 3  # files that a sentence names
_FOLDER = "/"  # the end of a folder's name


@dataclass(frozen=True)
class Listing:
    """The files at some paths.

    `state` is a hash of all names, sizes and times. `is_settled` says that no file was so new that it may
    have changed later without another time. `entries` maps the name of each file, below its path, to a short
    hash of its size and time; where that is too much to keep, the name of each folder, which ends with `/`,
    to a hash of its files.
    """

    state: str
    is_settled: bool = True
    entries: Mapping[str, str] = field(default_factory=dict)

    def to_text(self, most_bytes: int = MOST_BYTES) -> str:
        """Return the listing as text of at most `most_bytes`; files become folders until it fits."""
        most_parts = max((name.count("/") for name in self.entries), default=0)
        for n_parts in (None, *range(most_parts, -1, -1)):  # 0: all files as one folder, which always fits
            text = json.dumps([self.state, self.is_settled, self.by_folder(n_parts)], ensure_ascii=False)
            ascii_text = base64.b85encode(zlib.compress(text.encode("utf-8", "surrogateescape"))).decode()
            if len(ascii_text) <= most_bytes:
                break
        return ascii_text

    @classmethod
    def from_text(cls, text: str) -> Listing:
        """Parse the result of `to_text`."""
        fields = json.loads(zlib.decompress(base64.b85decode(text)).decode("utf-8", "surrogateescape"))
        return cls(*fields)

    def by_folder(self, n_parts: int | None) -> dict[str, str]:
        """Return the entries, with one for each folder of `n_parts` names in place of its files."""
        if n_parts is None:
            return dict(self.entries)
        folders: dict[str, list[str]] = defaultdict(list)
        for name, digest in sorted(self.entries.items()):
            folder = "".join(f"{part}{_FOLDER}" for part in name.split("/")[:-1][:n_parts])
            folders[folder or _FOLDER].append(f"{name}\0{digest}")
        return {folder: _hash("\0".join(below)) for folder, below in folders.items()}


def listing(paths: Iterable[str | Path]) -> Listing:
    """List all files at and below `paths`; links below are not followed."""
    began_ns = time.time_ns()
    digest = hashlib.blake2b(digest_size=8)
    roots = [os.fsencode(Path(path).resolve()) for path in paths]
    files = sorted((*file, root) for root in roots for file in _files(root))
    entries: dict[str, str] = {}
    newest_ns = 0
    for name, size, times, status_ns, root in files:
        digest.update(b"%s\0%d\0%s\0" % (name, size, times.encode()))
        newest_ns = max(newest_ns, status_ns)  # a program may set the other time, even to next year
        # The names of folders tell several paths apart.
        base = root if name != root and len(roots) == 1 else root.rpartition(b"/")[0]
        entries[os.fsdecode(name.removeprefix(base).lstrip(b"/"))] = _hash(f"{size} {times}")
    return Listing(digest.hexdigest(), newest_ns < began_ns - SETTLED_NS, entries)


def state(paths: Iterable[str | Path]) -> str:
    """Hash the names, sizes and times of all files at and below `paths`; links below are not followed."""
    return listing(paths).state


def total_bytes(paths: Iterable[str | Path]) -> int:
    """Return the size of all files at and below `paths`; links below are not followed."""
    return sum(max(size, 0) for path in paths for _, size, *_ in _files(os.fsencode(Path(path).resolve())))


def differences(before: Listing, now: Listing) -> list[str]:
    """Return a phrase each for the files, or folders, that came, went and changed: `+1 new.txt`."""
    then, entries = dict(before.entries), dict(now.entries)
    if any(name.endswith(_FOLDER) for name in then) and not any(name.endswith(_FOLDER) for name in entries):
        n_parts = max(0 if name == _FOLDER else name.count(_FOLDER) for name in then)
        entries = now.by_folder(n_parts)
    new, missing = sorted(entries.keys() - then.keys()), sorted(then.keys() - entries.keys())
    differing = sorted(name for name in entries.keys() & then.keys() if entries[name] != then[name])
    return [
        *([f"+{len(new):,} {_names(new)}"] if new else []),
        *([f"-{len(missing):,} {_names(missing)}"] if missing else []),
        *([f"{len(differing):,} changed: {_names(differing)}"] if differing else []),
    ]


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    first = ", ".join(_printable(name) if name != _FOLDER else "the folder itself" for name in names[:_SHOWN])
    return f"{first} and {counted(rest, 'other')}" if rest > 0 else first


def _printable(name: str) -> str:
    """Return a name that any terminal can print: other bytes and control characters escaped."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _hash(text: str) -> str:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=6).digest()
    return base64.b85encode(digest).decode()


def _files(path: bytes) -> Iterator[tuple[bytes, int, str, int]]:
    """Yield the name, size, times, and time of the status of each file."""
    try:
        status = os.lstat(path)
        below = [entry.path for entry in os.scandir(path)] if stat.S_ISDIR(status.st_mode) else []
    except OSError:  # vanished since the listing, or not readable: the run will report it
        yield path, -1, "0", 0
        return
    if not stat.S_ISDIR(status.st_mode):
        # A program may set the time of the content, not that of the status, which every change moves. It may
        # set a time in the future, and a file that replaces it the same one, so that counts beside the other.
        times = str(status.st_ctime_ns)
        if status.st_mtime_ns > status.st_ctime_ns:
            times = f"{status.st_mtime_ns} {times}"
        yield path, status.st_size, times, status.st_ctime_ns
    for name in below:
        yield from _files(name)
