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
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factory.counted import counted
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.matching import folder_of
from spark_udfs.ingest.place import FileState, Place

MOST_BYTES = 16_384  # of the listings of a snapshot, which stand in its summary: some 1,000 files
SETTLED_NS = 2 * 10**9  # the coarsest time of a file system; a later change may leave the time as it was
_SHOWN = 3  # files that a sentence names
_FOLDER = "/"  # the end of a folder's name
_UNREADABLE = FileState(-1, "0", 0, 0)


@dataclass(frozen=True)
class Listing:
    """The files at some paths.

    `state` is a hash of all names, sizes and times. `is_settled` says that no file was so new that it may
    have changed later without another time. `entries` maps the name of each file, below its path, to a short
    hash of its size and time; where that is too much to keep, the name of each folder, which ends with `/`,
    to a hash of its files. `large` has the states of large files.
    """

    state: str
    is_settled: bool = True
    entries: Mapping[str, str] = field(default_factory=dict)
    large: Mapping[Place, FileState] = field(default_factory=dict)

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


def listing(paths: Iterable[str | Path | Place], large_bytes: int | None = None) -> Listing:
    """List all files at and below `paths`; links below are not followed.

    Large are the files of more than `large_bytes` that may be read in parts.
    """
    began_ns = time.time_ns()
    digest = hashlib.blake2b(digest_size=8)
    places = [place_of(path) for path in paths]
    files = []
    large: dict[Place, FileState] = {}
    for place in places:
        prefix = place.address.rstrip(b"/") + b"/"
        # The names of folders tell several paths apart.
        base = b"" if len(places) == 1 else os.fsencode(place.name) + b"/"
        for name, state_of_file in place.states():
            size, version, _, changed_ns, has_parts = state_of_file or _UNREADABLE
            if state_of_file is not None and large_bytes is not None and size > large_bytes and has_parts:
                holder = folder_of(place) if name else place.parent
                large[holder.below(name or os.fsencode(place.name))] = state_of_file
            path, entry = (prefix + name, base + name) if name else (place.address, os.fsencode(place.name))
            files.append((path, size, version, changed_ns, entry))
    entries: dict[str, str] = {}
    newest_ns = 0
    for path, size, version, changed_ns, entry in sorted(files):
        digest.update(b"%s\0%d\0%s\0" % (path, size, version.encode()))
        newest_ns = max(newest_ns, changed_ns)
        entries[os.fsdecode(entry)] = _hash(f"{size} {version}")
    return Listing(digest.hexdigest(), newest_ns < began_ns - SETTLED_NS, entries, large)


def state(paths: Iterable[str | Path | Place]) -> str:
    """Hash the names, sizes and times of all files at and below `paths`; links below are not followed."""
    return listing(paths).state


def total_bytes(paths: Iterable[str | Path | Place]) -> int:
    """Return the size of all files at and below `paths`; links below are not followed."""
    states = (state_of_file for path in paths for _, state_of_file in place_of(path).states())
    return sum(state_of_file.n_bytes for state_of_file in states if state_of_file is not None)


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
