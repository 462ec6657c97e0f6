"""Files below a folder that a reader leaves out, and their number by ending.

A reader of records takes the files of its endings alone. This module counts the other files of a folder, and
the files that `exclude` keeps from a reader of chosen files. Hidden names, names that begin with `_` (which
other programs keep for marks such as `_SUCCESS`) and the card of a dataset, which is read for its license,
are not counted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from factory.counted import conjunction, counted
from factory.ingest.items import Tree
from factory.ingest.listing import UNWANTED, files_below, parents_of
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.compression import COMPRESSIONS
from spark_udfs.ingest.globs import compiled
from spark_udfs.ingest.json_document import is_json_document
from spark_udfs.ingest.matching import folder_of
from spark_udfs.ingest.place import Place

_EVERY = ("**/*",)
_PLAIN_ENDING = re.compile(r"[a-z0-9][a-z0-9_+-]{0,9}")
_SHOWN = 6  # endings in a phrase
_CARD = b"readme.md"


def ending_of(name: bytes) -> str:
    """Return the ending of a file's name in small letters, with one before a compression: `.json.gz`.

    It is empty for a name without an ending, or with one that does not look like a type.
    """
    base = os.fsdecode(name).rpartition("/")[2].lower()
    stem, dot, last = base.rpartition(".")
    if not dot or not stem or not _PLAIN_ENDING.fullmatch(last):
        return ""
    inner = stem.rpartition(".")[2] if "." in stem else ""
    if f".{last}" in COMPRESSIONS and _PLAIN_ENDING.fullmatch(inner) and not inner.isdigit():
        return f".{inner}.{last}"
    return f".{last}"


def files_left_out(
    folder: Place, takes: Callable[[bytes], object], exclude: Sequence[str] = UNWANTED
) -> Iterator[bytes]:
    """Yield the names of data files below a folder that `takes` refuses, without `exclude` and links."""
    for name in files_below(folder, _EVERY, exclude):
        *folders, base = name.split(b"/")
        is_hidden = base.startswith((b".", b"_")) or any(part.startswith(b".") for part in folders)
        if is_hidden or name.lower() == _CARD or takes(name):
            continue
        if folder.kind(name) == "file" and not folder.is_link(name):
            yield name


def count_endings(names: Iterable[bytes]) -> dict[str, int]:
    """Return the number of names by ending, most first."""
    counts = Counter(map(ending_of, names))
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def endings_phrase(n_by_ending: Mapping[str, int]) -> str:
    """Return numbers by ending as a phrase: `7 .csv, 5 .xml and 2 of other endings`."""
    pairs = [(ending or "without an ending", n) for ending, n in n_by_ending.items()]
    parts = [", ".join(f"{n:,} {ending}" for ending, n in pairs[:_SHOWN])]
    if rest := sum(n for _, n in pairs[_SHOWN:]):
        parts.append(f"{rest:,} of other endings")
    return conjunction(parts)


def left_out_phrase(n_by_ending: Mapping[str, int]) -> str:
    """Return how many files are left out, by ending, for the line of a run; empty without any."""
    files = counted(sum(n_by_ending.values()), "file")
    return f"{files} left out: {endings_phrase(n_by_ending)}" if n_by_ending else ""


def endings_left_out(
    paths: Iterable[str | Path | Place], patterns: Sequence[str], exclude: Sequence[str] = UNWANTED
) -> dict[str, int]:
    """Return how many files below the folders among `paths` a reader of `patterns` leaves out, by ending.

    Files that match `exclude` are not counted: the user left them out.
    """
    pattern = compiled(patterns)
    places = dict.fromkeys(map(place_of, paths))
    return count_endings(
        name
        for place in places
        if place.kind() == "folder" and folder_of(place) == place  # a pattern names its files
        for name in files_left_out(place, partial(_is_read, pattern, place), exclude)
    )


def files_excluded(
    folder: Place, include: Sequence[str], exclude: Sequence[str], *, deep: bool = True
) -> Iterator[tuple[str, bytes]]:
    """Yield the files below a folder that match `include` and are left out by `exclude`, as (pattern, name).

    The pattern is the first of `exclude` that matches the file or a folder above it. Files that every reader
    leaves out, such as the files in `.git`, are not among them.
    """
    patterns = {glob: compiled([glob]) for glob in exclude if glob not in UNWANTED}
    if not patterns:
        return
    every = compiled(list(patterns))
    for name in files_below(folder, include, UNWANTED, deep=deep):
        places = [name, *parents_of(name)]
        if any(map(every.fullmatch, places)):
            yield next(glob for glob, regex in patterns.items() if any(map(regex.fullmatch, places))), name


def endings_excluded(
    trees: Iterable[Tree], include: str | Sequence[str], exclude: str | Sequence[str]
) -> dict[str, int]:
    """Return how many files of the trees that match `include` are left out by `exclude`, by ending."""
    includes, excludes = ([globs] if isinstance(globs, str) else globs for globs in (include, exclude))
    return count_endings(
        name for tree in trees for _, name in files_excluded(tree.folder, includes, excludes, deep=tree.deep)
    )


def _is_read(pattern: re.Pattern[bytes], folder: Place, name: bytes) -> bool:
    return pattern.fullmatch(name) is not None and not is_json_document(folder, name)
