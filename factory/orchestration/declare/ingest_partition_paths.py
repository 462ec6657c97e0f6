"""The paths of a partition's files: a path that names its key, or a folder of its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import dagster as dg

from factory.errors import ConfigurationError
from spark_udfs.ingest.place import LocalFiles

PARTITION = "{partition}"  # placeholder for a partition key in a path


def path_of(path: Path, key: str) -> Path:
    """Return `path` with `key` in place of `{partition}`, or else the folder `key` below it."""
    return Path(str(path).replace(PARTITION, key)) if PARTITION in str(path) else path / key


def keys_at(paths: Iterable[Path], of: dg.PartitionsDefinition[str]) -> list[str]:
    """Return the partitions at `paths`: the keys of `of`, or for dynamic partitions the folders on disk.

    Hidden folders and `__pycache__` are skipped. Raises ConfigurationError for a folder name that is not
    UTF-8, which no table can hold.
    """
    if not isinstance(of, dg.DynamicPartitionsDefinition):
        return list(of.get_partition_keys())
    folders = [place for place in map(LocalFiles.at, paths) if place.kind() == "folder"]
    found = {
        os.fsdecode(name) for folder in folders for name in folder.children() if folder.kind(name) == "folder"
    }
    for name in sorted(found):
        if os.fsencode(name).decode(errors="replace") != name:
            raise ConfigurationError(
                f"The name of the folder {os.fsencode(name)!r} is not UTF-8, so no partition can have it. "
                "Rename it."
            )
    return sorted(name for name in found if not name.startswith(".") and name != "__pycache__")
