"""Files that git ignores, by the `.gitignore` files of a folder, as patterns for `exclude`.

Git itself is not asked: it may be absent, and a folder may be a copy of a checkout without its `.git`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from factory.ingest.globs import compiled
from factory.ingest.listing import parents_of

FILE = ".gitignore"
_MAX_BYTES = 1 << 20  # read of a file of patterns
_WILDCARD = re.compile(r"[*?]")
_NO_GLOB = re.compile(r"[\\[\]/!]|\*\*")  # ways to match that globs lack, and lines of one folder


def ignored_patterns(folder: Path, names: Sequence[bytes]) -> list[str]:
    """Return patterns that match those of the `names` below `folder` that git ignores, and no other name.

    A pattern is the line of `.gitignore` where it matches no other name, else `**/build/**` for an ignored
    folder or `**/*.gen.js` or `**/a.gen.js` for a file, else the path itself. A path that no pattern matches
    alone, because it contains a `*` or `?`, has none.
    """
    ignores = GitIgnores(folder)
    places: dict[bytes, None] = {}
    other_names = []
    for name in names:
        if (place := ignores.ignored_place(name)) is None:
            other_names.append(name)
        else:
            places[place] = None

    @cache
    def matches_others(glob: str) -> bool:
        expression = compiled([glob])
        return any(expression.fullmatch(name) for name in other_names)

    patterns: dict[str, None] = {}
    for place in sorted(places):
        path = os.fsdecode(place)
        candidates = [*_line_as_glob(ignores.line_of(place), path), *_candidates(path)]
        if not any(glob in patterns for glob in candidates):
            pattern = next((glob for glob in candidates if not matches_others(glob)), None)
            if pattern is not None:
                patterns[pattern] = None
    return list(patterns)


def _line_as_glob(line: str, path: str) -> Iterator[str]:
    """Yield a line of `.gitignore` as a glob, if it has one and no place: no folder before its name."""
    name = line.rstrip("/ ")
    if _WILDCARD.search(name) and not _NO_GLOB.search(name):
        yield f"**/{name}/**" if path.endswith("/") else f"**/{name}"


def _candidates(place: str) -> tuple[str, ...]:
    """Return the patterns that may stand for an ignored path, the most general first."""
    base = place.rstrip("/").rpartition("/")[2]
    if place.endswith("/"):
        return f"**/{base}/**", f"{place}**"
    stem, dot, ending = base.partition(".")
    endings = (f"**/*.{ending}",) if stem and dot else ()
    return *endings, f"**/{base}", place


class GitIgnores:
    """The `.gitignore` files of a folder and of the folders below it, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._patterns = cache(self._read)
        self._deciding = cache(self._decide)

    def ignored_place(self, name: bytes) -> bytes | None:
        """Return the outermost ignored folder above a file, with a slash at its end, or the ignored file.

        Return None for a file that git does not ignore. Nothing below an ignored folder is taken back in.
        """
        for place in (*parents_of(name), name):
            if self._is_ignored(place):
                return place
        return None

    def line_of(self, place: bytes) -> str:
        """Return the line of `.gitignore` that decides on a path; empty without one."""
        return self._deciding(place)[1]

    def _is_ignored(self, place: bytes) -> bool:
        return self._deciding(place)[0]

    def _decide(self, place: bytes) -> tuple[bool, str]:
        """Whether the patterns ignore a path, and the line that says so, of the innermost folder with one."""
        path = os.fsdecode(place)
        for folder in _folders_above(path):
            patterns = self._patterns(folder)
            verdict = patterns.spec.check_file(path.removeprefix(folder))
            if verdict.include is not None and verdict.index is not None:
                return verdict.include, patterns.lines[verdict.index]
        return False, ""

    def _read(self, folder: str) -> _Patterns:
        try:
            with (self._folder / folder / FILE).open("rb") as file:
                text = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            text = ""
        patterns = {line: pattern for line in text.splitlines() if (pattern := _pattern(line)) is not None}
        lines = [line for line in text.splitlines() if line in patterns]
        return _Patterns(GitIgnoreSpec([patterns[line] for line in lines]), lines)


@dataclass(frozen=True)
class _Patterns:
    """The patterns of a `.gitignore`, and their lines in the same order."""

    spec: GitIgnoreSpec
    lines: Sequence[str]


def _pattern(line: str) -> GitIgnoreSpecPattern | None:
    """Return a line as a pattern; None for those that git passes over, such as a comment or a lone `!`."""
    if not line.strip() or line.startswith("#"):
        return None
    try:
        return GitIgnoreSpecPattern(line)
    except GitIgnorePatternError:
        return None


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the innermost first and the top, an empty name, last."""
    end = path.rstrip("/").rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)
    yield ""
