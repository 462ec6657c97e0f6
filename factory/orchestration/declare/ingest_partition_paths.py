"""The paths of a partition's files: a path that names its key, or a folder of its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from factory.errors import ConfigurationError
from spark_udfs.ingest.matching import MatchingFiles
from spark_udfs.ingest.place import Place

if TYPE_CHECKING:
    import dagster as dg

PARTITION = "{partition}"  # placeholder for a partition key in a path


def path_of(path: Place, key: str) -> Place:
    """Return `path` with `key` in place of `{partition}`, or else the folder `key` below it."""
    if isinstance(path, MatchingFiles):
        return MatchingFiles(_with_key(path.folder, key), path.pattern.replace(PARTITION, key))
    return _with_key(path, key) if PARTITION in path.display() else path.below(os.fsencode(key))


def _with_key(path: Place, key: str) -> Place:
    if PARTITION not in path.display():
        return path
    return _with_key(path.parent, key).below(os.fsencode(path.name.replace(PARTITION, key)))


def keys_at(paths: Iterable[Place], of: dg.PartitionsDefinition[str]) -> list[str]:
    """Return the partitions at `paths`: the keys of `of`, or for dynamic partitions the folders on disk.

    Hidden folders and `__pycache__` are skipped. Raises ConfigurationError for a folder name that is not
    UTF-8, which no table can hold.
    """
    import dagster as dg

    if not isinstance(of, dg.DynamicPartitionsDefinition):
        return list(of.get_partition_keys())
    folders = [path for path in paths if path.kind() == "folder"]
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
