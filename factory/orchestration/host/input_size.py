"""How many bytes a run reads from outside it: what its JVM is chosen by (`factory.spark.java_options`).

The files of its sources count as they are on disk, the tables that it does not make as they are stored. The
number only compares small with large: an archive holds several times as much text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import dagster as dg

from factory.errors import DamagedFile, TableNotFound
from factory.lake.names import TableName, registered
from factory.lake.tables import Lake
from factory.orchestration.keys import table_of

SourceBytes = Callable[[str | None], int | None]
"""The size of what a source reads for a partition, None as the key of a whole table; None if unknown."""

_SOURCES: dict[dg.AssetKey, SourceBytes] = {}


def declare_source(key: dg.AssetKey, source_bytes: SourceBytes) -> None:
    """Declare how large the input of the source with the asset `key` is."""
    _SOURCES[key] = source_bytes


def input_bytes(
    assets: Iterable[dg.AssetsDefinition],
    lake: Lake,
    selection: Collection[dg.AssetKey] | None,
    instance: dg.DagsterInstance,
) -> int | None:
    """Return the bytes that a run of the assets of `selection`, None for all, reads from outside it.

    A partitioned source counts with the files of all partitions, because later tables read them all. None if
    a source does not declare its size.
    """
    run_assets = [asset for asset in assets if selection is None or asset.keys & set(selection)]
    outputs = {key for asset in run_assets for key in asset.keys}
    outside = {key for asset in run_assets for key in asset.keys_by_input_name.values()} - outputs
    total = sum(_stored_bytes(lake, table_of(key)) for key in outside)
    for asset in run_assets:
        partitions = asset.partitions_def
        names = partitions.get_partition_keys(dynamic_partitions_store=instance) if partitions else [None]
        for source_bytes in (_SOURCES[key] for key in asset.keys if key in _SOURCES):
            for name in names:
                size = source_bytes(name)
                if size is None:
                    return None
                total += size
    return total


def _stored_bytes(lake: Lake, table: TableName) -> int:
    """Return the size of a table, and of the files registered with it; zero if it cannot be read."""
    size = 0
    for name in (table, registered(table.name)) if table.namespace == "raw" else (table,):
        try:
            size += lake.published(name).size_bytes
        except (TableNotFound, DamagedFile):
            continue  # the asset that reads the table names it
    return size
