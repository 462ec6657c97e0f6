"""The files that a dataset's reader takes, and the error for paths without one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from factory.counted import counted
from factory.ingest.globs import compiled
from factory.ingest.listing import UNWANTED, files_below
from factory.ingest.readers import HTML_FILES
from factory.orchestration.datasets.dataset import Dataset
from factory.orchestration.datasets.formats import Chosen, Files
from factory.suggestions import quoted

_EVERY = ("**/*",)


def files_to_read(entry: Dataset, paths: Sequence[Path]) -> int:
    """Return the number of files at `paths` that the reader of `entry` takes; it opens none."""
    n_single = 0 if isinstance(entry, Chosen) else sum(path.is_file() for path in paths)
    return n_single + len(_below(entry.folders(paths), entry.patterns, entry.unwanted))


def pages_as_text(entry: Dataset, paths: Sequence[Path]) -> int:
    """Return how many of the files that a dataset of prose takes as they are look like web pages."""
    if entry.kind != "prose" or not isinstance(entry, Files):
        return 0
    pages = compiled(HTML_FILES)
    files = _below(entry.folders(paths), entry.patterns, entry.unwanted)
    return sum(pages.fullmatch(name) is not None for name in files)


def no_file_to_read(entry: Dataset, paths: Sequence[Path], folder: Path) -> str:
    """Return why no file at `paths` is read, which files exist, and a remedy.

    Paths below `folder` are shown relative to it.
    """
    shown = quoted(str(path.relative_to(folder) if path.is_relative_to(folder) else path) for path in paths)
    existing = [path for path in paths if path.exists()]
    if not existing:
        return f"{shown} does not exist. Name another path."
    files = [os.fsdecode(name) for name in _below(existing, _EVERY, UNWANTED)]
    if not files:
        return f"No file exists under {shown}. Name another path."
    examples = f"{counted(len(files), 'file')} there, such as `{files[0]}`"
    return f"No file under {shown} matches {quoted(entry.patterns)} ({examples}). {_remedy(entry, existing)}"


def _remedy(entry: Dataset, folders: Sequence[Path]) -> str:
    if not isinstance(entry, Chosen):
        return "Name another path, or another `format`."
    if any(_below(folders, entry.include, UNWANTED)):
        return "`exclude` leaves out every file that matches: shorten it."
    deeper = [f"**/{pattern}" for pattern in entry.include if not pattern.startswith("**")]
    if any(_below(folders, deeper, entry.unwanted)):
        return f"Files in folders below match {quoted(deeper)}: write that."
    return "Correct `include`, or name another path."


def _below(folders: Iterable[Path], include: Sequence[str], exclude: Sequence[str]) -> list[bytes]:
    return [name for folder in folders if folder.is_dir() for name in files_below(folder, include, exclude)]
