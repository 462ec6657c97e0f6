"""Where the files of a partition lie: at a path that names its key, or in a folder of its name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import dagster as dg

PARTITION = "{partition}"  # in a path: where the key of a partition stands


def path_of(path: Path, key: str) -> Path:
    """What lies at `path` of the partition `key`: where it names none, it is the folder of their folders."""
    return Path(str(path).replace(PARTITION, key)) if PARTITION in str(path) else path / key


def keys_at(paths: Iterable[Path], of: dg.PartitionsDefinition[str]) -> list[str]:
    """The partitions that may lie at `paths`: the folders that are there, or those that `of` knows.

    Hidden folders and `__pycache__` are what tools leave, and none.
    """
    if not isinstance(of, dg.DynamicPartitionsDefinition):
        return list(of.get_partition_keys())
    folders = [path for path in paths if path.is_dir()]
    found = {entry.name for path in folders for entry in path.iterdir() if entry.is_dir()}
    return sorted(name for name in found if not name.startswith(".") and name != "__pycache__")
