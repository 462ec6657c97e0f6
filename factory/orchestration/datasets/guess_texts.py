"""Guess the datasets of single files in a folder: code, or prose and web pages, and what to leave out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from factory.ingest.git_ignored import FILE as IGNORE_FILE
from factory.ingest.git_ignored import ignored_patterns
from factory.ingest.listing import UNWANTED, files_below
from factory.ingest.vendored import INSTALLED, Exclusion, exclusions, pattern_reasons
from factory.orchestration.chain.dedup.group import Kind
from spark_udfs.ingest.file_types import CODE, kind_of
from spark_udfs.ingest.place import Place

MOST_FILES = 100_000  # listed of a folder; a larger one is guessed from its first files
PROSE = frozenset({"md", "markdown", "rst", "txt", "tex"})
HTML = frozenset({"htm", "html", "xhtml"})
CARD = {"README.md": "describes the records"}


@dataclass(frozen=True)
class TextFiles:
    """Files of one kind and format, by the patterns that choose them."""

    kind: Kind
    format: str
    include: tuple[str, ...]
    exclude: tuple[Exclusion, ...]
    files: int


def text_files(
    folder: Place, *, deep: bool = True, has_records: bool = False, apart: Iterable[bytes] = ()
) -> Iterator[TextFiles]:
    """Yield the texts of a folder: its code, or its prose and its web pages.

    Leaves out installed, vendored, hidden and git-ignored files, the README of a folder of records, and files
    that are read `apart`, with others.
    """
    of_others = frozenset(apart)
    names = [name for name in _text_names(folder, deep) if name not in of_others]
    git_patterns = ignored_patterns(folder, names) if names else []
    if not exclusions(names, dict.fromkeys(git_patterns, ""))[1]:
        git_patterns = []  # a folder of data is often ignored as a whole
    card = CARD if has_records else {}
    _, own_names = exclusions(names, card | pattern_reasons(is_code=True, git_patterns=git_patterns))
    by_kind = {kind: _files_of(own_names, kind) for kind in ("code", "prose", "html")}
    if by_kind["code"] and len(by_kind["code"]) >= len(by_kind["prose"]) + len(by_kind["html"]):
        is_one = is_checkout(folder) or any(b"/" not in name for name in by_kind["code"])
        if is_one or not deep:
            choice = _chosen(
                names, "code", card | pattern_reasons(is_code=True, git_patterns=git_patterns), deep
            )
            yield TextFiles("code", "files", *choice)
        else:
            below = [name.partition(b"/")[2] or name for name in names]
            git_patterns = git_patterns and ignored_patterns(folder, names, _below_a_repository)
            choice = _chosen(below, "code", pattern_reasons(is_code=True, git_patterns=git_patterns), deep)
            yield TextFiles("code", "repositories", *choice)
        return
    patterns = card | pattern_reasons(is_code=is_checkout(folder), git_patterns=git_patterns)
    for kind, format in (("prose", "files"), ("html", "html")):
        if (choice := _chosen(names, kind, patterns, deep))[-1]:
            yield TextFiles("prose", format, *choice)


def is_checkout(folder: Place) -> bool:
    """Whether a folder is a checkout, or the copy of one without its `.git`."""
    return any(folder.kind(name) is not None for name in (b".git", os.fsencode(IGNORE_FILE)))


def _text_names(folder: Place, deep: bool) -> list[bytes]:
    """The first files with the ending of a text, and as many of installed packages."""
    own = islice(files_below(folder, ("**/*",), (*UNWANTED, *INSTALLED), deep=deep), MOST_FILES)
    packages = islice(files_below(folder, INSTALLED, UNWANTED), MOST_FILES) if deep else ()
    return [name for names in (own, packages) for name in names if _kind(extension(name)) is not None]


def _kind(ending: str) -> str | None:
    if ending in PROSE:
        return "prose"
    if ending in HTML:
        return "html"
    return "code" if kind_of(f"a.{ending}").language in CODE else None


def _files_of(names: Iterable[bytes], kind: str) -> list[bytes]:
    return [name for name in names if _kind(extension(name)) == kind]


def _chosen(
    names: Sequence[bytes], kind: str, reason_by_pattern: Mapping[str, str], deep: bool
) -> tuple[tuple[str, ...], tuple[Exclusion, ...], int]:
    """The patterns of the files of a kind, those left out, and the number of files that stay."""
    _, own_names = exclusions(_files_of(names, kind), reason_by_pattern)
    counts = Counter(map(extension, own_names))
    most_first = sorted(counts, key=lambda ending: (-counts[ending], ending))
    left_out, _ = exclusions([name for name in names if extension(name) in counts], reason_by_pattern)
    include = tuple(f"{'**/' if deep else ''}*.{ending}" for ending in most_first)
    return include, tuple(left_out), len(own_names)


def _below_a_repository(path: str) -> str:
    """A path or pattern relative to its repository; a path outside repositories is unchanged."""
    return path if path.startswith("**/") else path.partition("/")[2] or path


def extension(name: bytes) -> str:
    """Return the last ending of a file's name in small letters, the name itself without one."""
    return os.fsdecode(name).rpartition("/")[2].rpartition(".")[2].lower()
