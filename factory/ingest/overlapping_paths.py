"""The refusal of overlapping paths: a file that two paths of a dataset read would become two documents.

A path inside another one is no fault by itself, because patterns may leave its files to the inner path.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from factory.errors import ConfigurationError


def refuse_overlap(paths: Iterable[str | Path], files: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise ConfigurationError if a file is read twice because one path is inside another.

    `files` are a resolved folder and a name below it, once for each path that reads the file.
    """
    roots = {Path(path).resolve() for path in paths}
    if all(roots.isdisjoint(root.parents) for root in roots):
        return
    names: set[bytes] = set()
    for folder, name in files:
        file = folder + b"/" + name
        if file in names:
            inner, outer, *_ = _roots_around(Path(os.fsdecode(file)), roots)
            raise ConfigurationError(
                f"`{inner}` is inside `{outer}`, and both paths read `{os.fsdecode(name)}`, which would be "
                "two documents. Name one of the two paths."
            )
        names.add(file)


def _roots_around(file: Path, roots: set[Path]) -> list[Path]:
    """The paths that hold a file, the innermost first."""
    return [place for place in (file, *file.parents) if place in roots]
