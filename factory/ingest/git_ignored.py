"""Files that git ignores, by the `.gitignore` files of a folder, as patterns for `exclude`.

Git itself is not asked: it may be absent, and a folder may be a copy of a checkout without its `.git`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from factory.ingest.listing import parents_of
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.place import Place

FILE = ".gitignore"
_MAX_BYTES = 1 << 20  # read of a file of patterns
_WILDCARD = re.compile(r"[*?]")
_PLAIN_NAME = re.compile(r"[\w-][\w.-]*")
_BLANKS_BEHIND = re.compile(r"(?<!\\) +$")  # which git drops, unless a backslash stands before one
_CLASS_OR_ESCAPE = re.compile(r"\\(.)|\[[!^]?\]?[^\]]*\]")


def ignored_patterns(folder: Place, names: Sequence[bytes], below: Callable[[str], str] = str) -> list[str]:
    """Return patterns that match the ignored `names` below `folder`, and no other name.

    A pattern is the line of `.gitignore` where it matches no other name, else `**/build/**` for an ignored
    folder or `**/*.gen.js` or `**/a.gen.js` for a file, else the path itself. `below` maps paths and patterns
    to the reader's view of them. A path that no pattern matches alone, because it contains a `*` or `?`, has
    none.
    """
    ignores = GitIgnores(folder)
    places: dict[bytes, None] = {}
    other_names = []
    for name in names:
        if (place := ignores.ignored_place(name)) is None:
            other_names.append(os.fsencode(below(os.fsdecode(name))))
        else:
            places[place] = None
    matches_others = cache(lambda glob: _matches_any(glob, other_names))
    patterns: dict[str, None] = {}
    for place in sorted(places):
        path, line = below(os.fsdecode(place)), ignores.line_as_glob(place)
        globs = (*([below(line)] if line else []), *_globs_of(path))
        matching = (glob for glob in globs if _matches_any(glob, [os.fsencode(path)]))
        if (pattern := next((glob for glob in matching if not matches_others(glob)), None)) is not None:
            patterns[pattern] = None
    return list(patterns)


def _globs_of(path: str) -> tuple[str, ...]:
    """Return the patterns that may stand for an ignored path, the most general first."""
    base = path.rstrip("/").rpartition("/")[2]
    if path.endswith("/"):
        return f"**/{base}/**", f"{path}**"
    stem, dot, ending = base.partition(".")
    endings = (f"**/*.{ending}",) if stem and dot else ()
    return *endings, f"**/{base}", path


class IgnoreLines:
    """The lines of a `.gitignore` file that may ignore a file, or the lines that may ignore a folder.

    A line that is a plain name is compiled only for a path with that name, because generated files have very
    many of them.
    """

    def __init__(
        self, lines: Sequence[str], pattern_of: Callable[[str], GitIgnoreSpecPattern | None]
    ) -> None:
        self._lines = lines
        self._pattern_of = pattern_of
        self._spec = cache(self._spec_with)
        self._numbers_by_name: dict[str, list[int]] = {}
        self._other_numbers: list[int] = []
        for number, line in enumerate(lines):
            if _PLAIN_NAME.fullmatch(line):
                self._numbers_by_name.setdefault(line, []).append(number)
            elif pattern_of(line) is not None:
                self._other_numbers.append(number)

    def deciding_line(self, path: str) -> str | None:
        """Return the line that decides about a path, which begins with `!` to take it back in; else None."""
        parts = dict.fromkeys(path.split("/"))
        plain = tuple(number for part in parts for number in self._numbers_by_name.get(part, ()))
        numbers, spec = self._spec(plain)
        index = spec.check_file(path).index
        return None if index is None else self._lines[numbers[index]]

    def _spec_with(self, plain: tuple[int, ...]) -> tuple[list[int], GitIgnoreSpec]:
        numbers = sorted([*self._other_numbers, *plain])
        patterns = (self._pattern_of(self._lines[number]) for number in numbers)
        return numbers, GitIgnoreSpec(pattern for pattern in patterns if pattern is not None)


class IgnoreFile:
    """A `.gitignore` file; lines that end in a slash concern only folders."""

    def __init__(self, text: str) -> None:
        lines = [_BLANKS_BEHIND.sub("", line) for line in text.splitlines()]
        pattern_of = cache(_pattern_of)
        self._of_files = IgnoreLines([line for line in lines if not line.endswith("/")], pattern_of)
        self._of_folders = IgnoreLines([line.rstrip("/") for line in lines], pattern_of)

    def deciding_line(self, path: str) -> str | None:
        """Return the line that decides about a file, or about a folder with a slash at its end."""
        lines = self._of_folders if path.endswith("/") else self._of_files
        return lines.deciding_line(path.rstrip("/"))


def _pattern_of(line: str) -> GitIgnoreSpecPattern | None:
    """Return a line as a pattern, None for one that git passes over, such as a comment or a lone `!`."""
    try:
        pattern = GitIgnoreSpecPattern(line)
    except GitIgnorePatternError:
        return None
    return None if pattern.include is None else pattern


class GitIgnores:
    """The `.gitignore` files of a folder and of the folders below it, each read once."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder
        self._file = cache(self._read)
        self._is_repository = cache(lambda below: folder.kind(os.fsencode(f"{below}.git")) is not None)
        self._decision = cache(self._decide)

    def ignored_place(self, name: bytes) -> bytes | None:
        """Return the outermost ignored folder above a file, with a slash at its end, or the ignored file.

        Return None for a file that git does not ignore. Nothing below an ignored folder is taken back in.
        """
        for place in (*parents_of(name), name):
            if self._decision(os.fsdecode(place)) is not None:
                return place
        return None

    def line_as_glob(self, place: bytes) -> str | None:
        """Return, as a glob, the line that makes git ignore a path, None for a line without a glob."""
        path = os.fsdecode(place)
        decision = self._decision(path)
        return None if decision is None else _glob_of(*decision, is_folder=path.endswith("/"))

    def _decide(self, path: str) -> tuple[str, str] | None:
        """Return the folder and the line that make git ignore a path. The innermost file with a matching line
        decides, up to the repository that holds the path.
        """
        for folder in _folders_above(path):
            file = self._file(folder)
            line = None if file is None else file.deciding_line(path.removeprefix(folder))
            if line is not None:
                return None if line.startswith("!") else (folder, line)
            if self._is_repository(folder):
                break
        return None

    def _read(self, folder: str) -> IgnoreFile | None:
        try:
            text = self._folder.head(os.fsencode(f"{folder}{FILE}"), _MAX_BYTES)
            return IgnoreFile(text.decode("utf-8", "replace"))
        except OSError:
            return None


def _glob_of(folder: str, line: str, *, is_folder: bool) -> str | None:
    """Return a line with wildcards of the `.gitignore` of a folder as a glob, None for a line without.

    Globs know no classes of letters, so `[0-9]` becomes `?`, which may match too much. A `**` within a name
    has no glob, because it means less to git.
    """
    pattern = _CLASS_OR_ESCAPE.sub(lambda match: match[1] or "?", line)
    if not _WILDCARD.search(pattern) or any("**" in part and part != "**" for part in pattern.split("/")):
        return None
    pattern = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
    below = "/**" if is_folder and not pattern.endswith("/**") else ""
    return f"{folder}{pattern}{below}"


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
