"""Files that the owner of a folder did not write: installed packages, vendored code, files that git ignores.

The lists are a short form of linguist's `vendor.yml`. A `vendor` folder may hold contracts, so names with
another meaning count only in code and in checkouts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from factory.ingest.listing import parents_of
from spark_udfs.ingest.globs import compiled

VENDORED, IGNORED, HIDDEN = "vendored", "ignored by git", "hidden"  # reasons
INSTALLED_FOLDERS = ("node_modules", "bower_components", "site-packages")
INSTALLED = tuple(f"**/{name}/**" for name in INSTALLED_FOLDERS)
VENDORED_CODE = (
    *INSTALLED,
    *("**/vendor/**", "**/vendors/**", "**/third_party/**", "**/third-party/**", "**/3rdparty/**"),
    *("**/dist/**", "**/Pods/**", "**/Carthage/**", "**/Godeps/**"),
    *("**/*.min.js", "**/*.min.mjs", "**/*.min.css", "**/*.bundle.js", "**/jquery-*.js"),
)
HIDDEN_NAMES = ("**/.*/**", "**/.*")


@dataclass(frozen=True)
class Exclusion:
    """A pattern for `exclude`, why its files are left out, and how many they are."""

    pattern: str
    reason: str
    files: int


def exclusions(
    names: Sequence[bytes], reason_by_pattern: Mapping[str, str]
) -> tuple[list[Exclusion], list[bytes]]:
    """Return the patterns that match a name, and the names that none matches.

    A pattern matches a file by its path, or by a folder above it; the first that matches counts the file.
    """
    patterns = {glob: compiled([glob]) for glob in reason_by_pattern}
    every = compiled(list(patterns))
    counts = dict.fromkeys(patterns, 0)
    kept_names = []
    for name in names:
        places = [name, *parents_of(name)]
        if any(map(every.fullmatch, places)):
            counts[next(glob for glob, regex in patterns.items() if any(map(regex.fullmatch, places)))] += 1
        else:
            kept_names.append(name)
    matching = [Exclusion(glob, reason_by_pattern[glob], n) for glob, n in counts.items() if n]
    return matching, kept_names


def pattern_reasons(*, is_code: bool, git_patterns: Iterable[str]) -> dict[str, str]:
    """Return the reason for each pattern; `git_patterns` match files that git ignores."""
    return {
        **dict.fromkeys(VENDORED_CODE if is_code else INSTALLED, VENDORED),
        **dict.fromkeys(git_patterns, IGNORED),
        **dict.fromkeys(HIDDEN_NAMES, HIDDEN),
    }


def installed_folder(name: bytes) -> str:
    """Return the outermost folder of installed packages above a path that `INSTALLED` matches."""
    every = compiled(INSTALLED)
    return os.fsdecode(next(place for place in parents_of(name) if every.fullmatch(place))).rstrip("/")
