"""The files of a place that match a pattern, as a place: `data/**/*.jsonl.gz`, `s3://bucket/2024-*/*.parquet`.

Names are relative to the folder before the first wildcard, so a document has the key, and so the id, that it
has when the folder itself is named. Items of work hold that folder, and workers know no patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO

from factory.errors import ConfigurationError
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.place import FilePart, FileState, Kind, Place

WILDCARD = re.compile(rb"[*?]")


@dataclass(frozen=True)
class MatchingFiles:
    """The files below `folder` with names that `pattern` matches; see `globs` for its wildcards."""

    folder: Place
    pattern: str

    @property
    def name(self) -> str:
        """The last part of the address of its folder."""
        return self.folder.name

    @property
    def address(self) -> bytes:
        """The address of its folder and the pattern."""
        return self.folder.address + b"/" + self.pattern.encode("utf-8", "surrogateescape")

    @property
    def parent(self) -> Place:
        """The folder."""
        return self.folder

    def below(self, name: bytes) -> Place:
        """Return the place of a name in the folder."""
        return self.folder.below(name) if name else self

    def canonical(self) -> MatchingFiles:
        """Return the same files by the folder's only address."""
        return replace(self, folder=self.folder.canonical())

    def display(self, name: bytes = b"") -> str:
        """Return the pattern, or the address of a file, as text."""
        return self.folder.display(name or self.pattern.encode("utf-8", "surrogateescape"))

    def location(self, name: bytes) -> str:
        """Return the location of a file as tables store it."""
        return self.folder.location(name)

    def kind(self, name: bytes = b"") -> Kind | None:
        """Return the kind of a name; the pattern is a folder if a file matches it."""
        if name:
            return self.folder.kind(name)
        return "folder" if next(self._matching(), None) is not None else None

    def is_link(self, name: bytes) -> bool:
        """Return whether a name is a link."""
        return bool(name) and self.folder.is_link(name)

    def link_target(self) -> str | None:
        """Return None."""
        return None

    def children(self) -> list[bytes]:
        """Return the first parts of the names that match, sorted."""
        return sorted({name.partition(b"/")[0] for name in self._matching()})

    def walk(self, enters: Callable[[bytes], bool], *, deep: bool = True) -> Iterator[bytes]:
        """Yield the names that match, in the order of the folder."""
        if self.folder.kind() != "folder":
            return
        for name in self.folder.walk(lambda below: self._may_match(below) and enters(below), deep=deep):
            # A folder that cannot be listed may hold a match, so its reader says why it cannot.
            if name.endswith(b"/") or self._regex.fullmatch(name):
                yield name

    def state(self, name: bytes) -> FileState:
        """Return the state of a file."""
        return self.folder.state(name)

    def states(self) -> Iterator[tuple[bytes, FileState | None]]:
        """Yield the names that match with their states."""
        return (
            (name, state)
            for name, state in self.folder.states()
            if state is None or self._regex.fullmatch(name)
        )

    def open(self, name: bytes, part: FilePart | None = None) -> AbstractContextManager[BinaryIO]:
        """Open a file to read."""
        return self.folder.open(name, part)

    def head(self, name: bytes, n_bytes: int) -> bytes:
        """Return the first bytes of a file."""
        return self.folder.head(name, n_bytes)

    def _matching(self) -> Iterator[bytes]:
        return (name for name in self.walk(lambda _: True) if not name.endswith(b"/"))

    def _may_match(self, folder: bytes) -> bool:
        """Return whether a file below a folder, given with a slash at its end, may match."""
        n_parts = folder.count(b"/")
        if n_parts > len(self._folders):
            return self._is_deep
        return self._folders[n_parts - 1].fullmatch(folder) is not None if n_parts else True

    @cached_property
    def _regex(self) -> re.Pattern[bytes]:
        return compiled([self.pattern])

    @cached_property
    def _is_deep(self) -> bool:
        return "**" in self.pattern

    @cached_property
    def _folders(self) -> list[re.Pattern[bytes]]:
        """The expressions of the folders above a match, by depth, up to the first part with `**`."""
        parts: list[str] = []
        for part in self.pattern.split("/")[:-1]:
            if "**" in part:
                break
            parts.append(part)
        return [compiled(["/".join(parts[:n]) + "/"]) for n in range(1, len(parts) + 1)]


def matching(place: Place) -> Place:
    """Return the files of a place with wildcards in its address, and any other place as it is.

    A file of that very name is the place itself. Raises ConfigurationError for wildcards in the name of a
    bucket.
    """
    if not _is_pattern(place) or place.kind() is not None:
        return place
    folder, parts = place, []
    while _is_pattern(folder):
        if folder == folder.parent:
            raise ConfigurationError(
                f"`{place.display()}` has wildcards where its folders begin. Name these."
            )
        parts.append(folder.name)
        folder = folder.parent
    return MatchingFiles(folder, "/".join(reversed(parts)))


def folder_of(place: Place) -> Place:
    """Return the place that holds the files of another one: the folder of a pattern, else the place."""
    return place.folder if isinstance(place, MatchingFiles) else place


def _is_pattern(place: Place) -> bool:
    return WILDCARD.search(place.address) is not None
