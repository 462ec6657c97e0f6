"""The files that a dataset's reader takes, and the error for paths without one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from factory.counted import counted
from factory.ingest.listing import UNWANTED, files_below
from factory.orchestration.datasets.file import Chosen, Dataset
from factory.suggestions import quoted
from spark_udfs.ingest.registry import RECORD_FILES

_EVERY = ("**/*",)


def files_to_read(entry: Dataset, paths: Sequence[Path]) -> int:
    """Return the number of files at `paths` that the reader of `entry` takes; it opens none."""
    single = [path for path in paths if path.is_file()]
    if not isinstance(entry, Chosen):
        return len(single) + len(_below(paths, RECORD_FILES[entry.format], UNWANTED))
    folders = [path for path in paths if path.is_dir()]
    if entry.format == "repositories":
        folders = [it for path in folders for it in path.iterdir() if it.is_dir() and not it.is_symlink()]
    return len(_below(folders, entry.include, entry.unwanted))


def no_file_to_read(entry: Dataset, paths: Sequence[Path], folder: Path) -> str:
    """Return why no file at `paths` is read, which files exist, and a remedy.

    Paths below `folder` are shown relative to it.
    """
    shown = quoted(str(it.relative_to(folder) if it.is_relative_to(folder) else it) for it in paths)
    there = [path for path in paths if path.exists()]
    if not there:
        return f"{shown} does not exist. Name another path."
    every = [os.fsdecode(name) for name in _below(there, _EVERY, UNWANTED)]
    if not every:
        return f"No file exists under {shown}. Name another path."
    wanted = entry.include if isinstance(entry, Chosen) else RECORD_FILES[entry.format]
    some = f"{counted(len(every), 'file')} there, such as `{every[0]}`"
    return f"No file under {shown} matches {quoted(wanted)} ({some}). {_remedy(entry, there)}"


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
