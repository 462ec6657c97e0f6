"""The inputs that the sensor watches: the paths of datasets, and the files of other tables.

Other tables are made of files too: facts (a list of blocked hosts changes daily), word lists, models and
tokenizers. Their assets declare the files, so the sensor finds them without a list of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from factory.lake import names
from factory.lake.names import TableName
from factory.orchestration.declare.ingest_partition_paths import keys_at, path_of
from factory.orchestration.table.declaration import FilesOf
from factory.orchestration.table.table_asset import declaration_of
from spark_udfs.ingest.address import place_of
from spark_udfs.ingest.place import Place


@dataclass(frozen=True)
class Watched:
    """A dataset and the files and folders of its raw table.

    The key of a partition replaces `{partition}` in a path. With dynamic `partitions`, each folder directly
    below the paths is a partition, created when the sensor first sees it.
    """

    dataset: str
    paths: tuple[Place, ...]
    partitions: dg.PartitionsDefinition[str] | None = None

    @property
    def name(self) -> str:
        """The name of its memory in the sensor's cursor."""
        return self.dataset

    @property
    def table(self) -> TableName:
        """The table made from the files."""
        return names.raw(self.dataset)

    def inputs(self) -> dict[str, list[Place]]:
        """Return the watched inputs: all paths under the name "", or the paths of each partition."""
        if self.partitions is None:
            return {"": _existing(self.paths)}
        inputs = {
            key: _existing(path_of(path, key) for path in self.paths)
            for key in keys_at(self.paths, self.partitions)
        }
        return {key: paths for key, paths in inputs.items() if paths}


def _existing(paths: Iterable[Place]) -> list[Place]:
    return [path.canonical() for path in paths if path.kind() is not None]


@dataclass(frozen=True)
class WatchedTable:
    """A table without partitions, and the files it is made from."""

    table: TableName
    files: FilesOf

    partitions: None = None

    @property
    def name(self) -> str:
        """The name of its memory in the sensor's cursor; no dataset has it, because it has a dot."""
        return str(self.table)

    def inputs(self) -> Mapping[str, list[Place]]:
        """Return its files under the name ""."""
        return {"": [place_of(path) for path in self.files(None)]}


def tables_of_files(
    assets: Sequence[dg.AssetsDefinition], datasets: Sequence[Watched]
) -> Iterator[WatchedTable]:
    """Yield the tables that declare their files, but for the raw tables of `datasets`."""
    raw = {dataset.table for dataset in datasets}
    for asset in assets:
        if not asset.is_executable or asset.partitions_def is not None:
            continue
        declaration = declaration_of(asset)
        if declaration.files is not None and declaration.table not in raw:
            yield WatchedTable(declaration.table, declaration.files)


def notice(datasets: Iterable[Watched], instance: dg.DagsterInstance) -> list[str]:
    """Sync folder partitions with disk; return the removed keys.

    The rows of a removed partition stay. Without the sync, a removed or misnamed folder would fail every run
    of all partitions. If a path itself is missing, such as an unmounted disk, no key is removed.
    """
    there: dict[str, set[str]] = {}
    unsure: set[str] = set()
    for dataset in datasets:
        partitions = dataset.partitions
        if isinstance(partitions, dg.DynamicPartitionsDefinition) and partitions.name:
            there.setdefault(partitions.name, set()).update(keys_at(dataset.paths, partitions))
            if not all(path.kind() == "folder" for path in dataset.paths):
                unsure.add(partitions.name)
    gone = []
    for name, keys in there.items():
        for key in set(instance.get_dynamic_partitions(name)) - keys if name not in unsure else ():
            instance.delete_dynamic_partition(name, key)
            gone.append(f"{name}/{key}")
        instance.add_dynamic_partitions(name, sorted(keys))
    return sorted(gone)
