"""Where the files of a partition lie: at a path that names its key, or in a folder of its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import dagster as dg

from factory.errors import ConfigurationError

PARTITION = "{partition}"  # in a path: where the key of a partition stands


def path_of(path: Path, key: str) -> Path:
    """What lies at `path` of the partition `key`: where it names none, it is the folder of their folders."""
    return Path(str(path).replace(PARTITION, key)) if PARTITION in str(path) else path / key


def keys_at(paths: Iterable[Path], of: dg.PartitionsDefinition[str]) -> list[str]:
    """The partitions that may lie at `paths`: the folders that are there, or those that `of` knows.

    Hidden folders and `__pycache__` are what tools leave, and none. Raises ConfigurationError for a folder
    whose name is no UTF-8, which no table can hold.
    """
    if not isinstance(of, dg.DynamicPartitionsDefinition):
        return list(of.get_partition_keys())
    folders = [path for path in paths if path.is_dir()]
    found = {entry.name for path in folders for entry in path.iterdir() if entry.is_dir()}
    for name in sorted(found):
        if os.fsencode(name).decode(errors="replace") != name:
            raise ConfigurationError(
                f"The name of the folder {os.fsencode(name)!r} is no UTF-8, so it can be no partition. "
                "Rename it."
            )
    return sorted(name for name in found if not name.startswith(".") and name != "__pycache__")
