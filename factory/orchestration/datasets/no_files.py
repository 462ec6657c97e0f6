"""The files that a dataset's reader takes, and the error for paths without one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from factory.counted import counted
from factory.ingest.items import record_names
from factory.ingest.left_out import count_endings
from factory.ingest.listing import UNWANTED, files_below, record_files_below
from factory.ingest.unsupported_paths import why_missing
from factory.ingest.web_pages import pages_among
from factory.orchestration.datasets.formats import RECORD_NOUNS, Chosen
from factory.orchestration.datasets.remedies import is_listed, remedies
from factory.orchestration.declare.ingest_dataset import Dataset
from factory.suggestions import quoted
from spark_udfs.ingest.matching import folder_of
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.registry import RECORD_FILES

_EVERY = ("**/*",)
_COMPRESSED_JSON = [
    pattern for patterns in RECORD_FILES.values() for pattern in patterns if ".json." in pattern
]
_TABLES = ("**/*.csv", "**/*.tsv", "**/*.json", "**/*.csv.gz", "**/*.json.gz", "**/*.xlsx")


def files_to_read(entry: Dataset, paths: Sequence[Place]) -> Iterator[tuple[Place, bytes]]:
    """Yield the files at `paths` that the reader takes, each once, as a place and a name below it."""
    return iter(dict.fromkeys(_files_to_read(entry, paths)))


def _files_to_read(entry: Dataset, paths: Sequence[Place]) -> Iterator[tuple[Place, bytes]]:
    if not isinstance(entry, Chosen):
        files = (path for path in paths if path.kind() == "file")
        yield from ((file.parent, os.fsencode(file.name)) for file in files)
    for folder in entry.folders(paths):
        if isinstance(entry, Chosen):
            names = files_below(folder, entry.patterns, entry.unwanted)
        else:
            names = record_names(folder, entry.patterns)
        yield from ((folder_of(folder), name) for name in names)


def pages_among_files(entry: Dataset, files: Iterable[tuple[Place, bytes]]) -> str | None:
    """Return why a dataset of single files may not read them if some are web pages, else None."""
    if entry.reader.many_records or entry.markup_choice == "keep" or entry.reader.of_pages:
        return None
    return pages_among([name for _, name in files])


def no_file_to_read(entry: Dataset, paths: Sequence[Place], folder: Path) -> str:
    """Return why no file at `paths` is read, which files exist, and a remedy.

    Paths below `folder` are shown relative to it.
    """
    names = [_relative(path, folder) for path in paths]
    shown = quoted(names)
    existing = [path for path in paths if path.kind() is not None]
    if not existing:
        reasons = (why_missing(name, path) for name, path in zip(names, paths, strict=True))
        return next(filter(None, reasons), f"{shown} does not exist. Name another path.")
    if isinstance(entry, Chosen) and all(path.kind() == "file" for path in existing):
        verb = "is a file" if len(existing) == 1 else "are files"
        remedy = f"Name the folder, with `include: {json.dumps(existing[0].name)}`."
        return f"{shown} {verb}, and `{entry.format}` reads folders. {remedy}"
    folders = [path for path in existing if path.kind() == "folder"]
    files = [os.fsdecode(name) for name in _below(folders, _EVERY, UNWANTED)]
    if not files:
        return f"No file exists under {shown}. Name another path."
    examples = f"{counted(len(files), 'file')} there, such as `{files[0]}`"
    remedy = _remedy(entry, folders, count_endings(map(os.fsencode, files)))
    return f"No file under {shown} matches {quoted(entry.patterns)} ({examples}). {remedy}"


def _relative(path: Place, folder: Path) -> str:
    """Return the path as a person reads it, relative to `folder` if it is below."""
    local = Path(path.display())
    return str(local.relative_to(folder)) if local.is_relative_to(folder) else path.display()


def _remedy(entry: Dataset, folders: Sequence[Place], n_by_ending: Mapping[str, int]) -> str:
    if not isinstance(entry, Chosen):
        return _other_format(folders, n_by_ending)
    if entry.reader.of_pages and (format := _record_format(folders)):
        return (
            f"Pages in records need two datasets: one with `format: {format}` and `text`, and one with "
            "`format: html` and `from`, the name of the first."
        )
    if any(_below(folders, entry.include, UNWANTED)):
        return "`exclude` leaves out every file that matches: shorten it."
    deeper = [f"**/{pattern}" for pattern in entry.include if not pattern.startswith("**")]
    if any(_below(folders, deeper, entry.unwanted)):
        return f"Files in folders below match {quoted(deeper)}: write that."
    return "Correct `include`, or name another path."


def _other_format(folders: Sequence[Place], n_by_ending: Mapping[str, int]) -> str:
    """Name the formats that take files in the folders; of tables of text, the formats to convert them to."""
    if format := _record_format(folders):
        return f"Write `format: {format}`, or name another path."
    if _below(folders, _COMPRESSED_JSON, UNWANTED):
        return "A list in a file of JSON becomes lines by `jq -c '.[]'`; or name another path."
    if any(_below(folders, _TABLES, UNWANTED)):
        return f"Convert them to {' or '.join(RECORD_NOUNS)}, or name another path."
    of_known_kinds = {ending: n for ending, n in n_by_ending.items() if is_listed(ending)}
    if sentences := [*filter(None, remedies(of_known_kinds))]:
        return " ".join(sentences)
    return "Name another path, or another `format`."


def _record_format(folders: Sequence[Place]) -> str | None:
    """Return the first format that takes files of the folders by their names."""
    for format, patterns in RECORD_FILES.items():
        if any(any(record_files_below(folder, patterns)) for folder in folders):
            return format
    return None


def _below(folders: Iterable[Place], include: Sequence[str], exclude: Sequence[str]) -> list[bytes]:
    return [name for folder in folders for name in files_below(folder, include, exclude)]
