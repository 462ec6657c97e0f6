"""Paths of a repository as text: their parts, and lookup by their last parts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence


def parent(path: str) -> str:
    """The folder of a path; empty at the top."""
    return path.rpartition("/")[0]


def last(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def n_shared(parts: Sequence[str], other: Sequence[str]) -> int:
    """The number of parts that two paths have in common, from the left."""
    for number, (part, other_part) in enumerate(zip(parts, other, strict=False)):
        if part != other_part:
            return number
    return min(len(parts), len(other))


class PathEndings:
    """The paths of a repository by their last parts."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: dict[str, list[str]] = {}
        for path in paths:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)

    def ending_in(self, ending: str) -> list[str]:
        """The paths that are `ending` or end in a slash and `ending`."""
        candidates = self._by_name.get(posixpath.basename(ending), ())
        return [path for path in candidates if path == ending or path.endswith(f"/{ending}")]
