"""Files that git ignores, by the `.gitignore` files of a folder, as patterns for `exclude`.

Git itself is not asked: it may be absent, and a folder may be a copy of a checkout without its `.git`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError

from factory.ingest.globs import compiled
from factory.ingest.listing import parents_of

FILE = ".gitignore"
_MAX_BYTES = 1 << 20  # read of a file of patterns


def ignored_patterns(folder: Path, names: Sequence[bytes]) -> list[str]:
    """Return patterns that match those of the `names` below `folder` that git ignores, and no other name.

    An ignored folder is `**/build/**` if all folders of its name are ignored, else its own path; a file is
    `**/*.gen.js`, `**/a.gen.js` or its own path.
    """
    ignores = GitIgnores(folder)
    places: dict[bytes, None] = {}
    other_names = []
    for name in names:
        if (place := ignores.ignored_place(name)) is None:
            other_names.append(name)
        else:
            places[place] = None
    patterns: dict[str, None] = {}
    for place in sorted(places):
        if not any(compiled([pattern]).fullmatch(place) for pattern in patterns):
            *general, own = _candidates(os.fsdecode(place))
            pattern = next((glob for glob in general if not _matches_any(glob, other_names)), own)
            patterns[pattern] = None
    return list(patterns)


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
        self._spec = cache(self._read)
        self._is_ignored = cache(self._decide)

    def ignored_place(self, name: bytes) -> bytes | None:
        """Return the outermost ignored folder above a file, with a slash at its end, or the ignored file.

        Return None for a file that git does not ignore. Nothing below an ignored folder is taken back in.
        """
        for place in (*parents_of(name), name):
            if self._is_ignored(place):
                return place
        return None

    def _decide(self, place: bytes) -> bool:
        """Whether the patterns ignore a path; those of the innermost folder that say anything decide."""
        path = os.fsdecode(place)
        for folder in _folders_above(path):
            spec = self._spec(folder)
            if spec is None:
                continue
            verdict = spec.check_file(path.removeprefix(folder)).include
            if verdict is not None:
                return verdict
        return False

    def _read(self, folder: str) -> GitIgnoreSpec | None:
        try:
            with (self._folder / folder / FILE).open("rb") as file:
                lines = file.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return None
        return GitIgnoreSpec.from_lines(filter(_is_pattern, lines))


def _is_pattern(line: str) -> bool:
    """Whether git takes a line as a pattern; it passes over others, such as a lone `!`."""
    try:
        GitIgnoreSpec.from_lines([line])
    except GitIgnorePatternError:
        return False
    return True


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the innermost first and the top, an empty name, last."""
    end = path.rstrip("/").rfind("/")
    while end >= 0:
        yield path[: end + 1]
        end = path.rfind("/", 0, end)
    yield ""


def _matches_any(pattern: str, names: Sequence[bytes]) -> bool:
    expression = compiled([pattern])
    return any(expression.fullmatch(name) for name in names)
