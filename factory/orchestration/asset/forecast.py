"""Forecast a run table by table: the run makes it, keeps it, or decides once it knows its input.

The forecast reads the metadata of tables and starts no Spark. Only a run that reads a source knows whether it
has changed, so the verdict on a table downstream of it is `maybe`: the run keeps the table if its input has
the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import dagster as dg

from factory.errors import DamagedFile, TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.asset.declaration import Declaration, PartitionSelection
from factory.orchestration.asset.reuse import NEW, Request, reasons, stale_lasting
from factory.orchestration.asset.table_asset import copartitioned, declaration_of
from factory.orchestration.host.partitions import RunBatch

Expectation = Literal["make", "maybe", "keep"]


@dataclass(frozen=True)
class Forecast:
    """The verdict on a table, and its reason; a kept table may have none."""

    table: TableName
    verdict: Expectation
    reason: str


def forecast(
    lake: Lake,
    assets: Iterable[dg.AssetsDefinition],
    runs: Sequence[RunBatch],
    instance: dg.DagsterInstance,
    *,
    reuse: bool,
) -> list[Forecast]:
    """Return a forecast of every main table of `runs`, upstream first; `instance` knows the partitions."""
    nodes = {key: asset for asset in assets for key in asset.keys}
    found: list[Forecast] = []
    coming: set[TableName] = set()  # tables that the run makes, or may make, earlier
    for batch in runs:
        for asset in dict.fromkeys(nodes[key] for key in batch.keys):
            declared = declaration_of(asset)
            request = Request.of(declared, batch.keys, reuse=reuse)
            parts = _parts(asset, declared, batch, nodes, instance)
            one = _of(lake, declared, parts, request, coming)
            found.append(one)
            if one.verdict != "keep":
                coming |= {output.table for output in declared.outputs}
    return found


def _of(
    lake: Lake, declared: Declaration, parts: PartitionSelection, request: Request, coming: set[TableName]
) -> Forecast:
    upstream: dict[str, Published] = {}
    for table in dict.fromkeys(declared.upstream.values()):
        try:
            upstream[str(table)] = lake.published(table)
        except TableNotFound:
            return Forecast(declared.table, "make", NEW if _is_new(lake, declared) else f"{table} is new")
        except DamagedFile:
            return Forecast(declared.table, "make", f"{table} is damaged")
    found = reasons(lake, declared, upstream, parts, request)
    if found:
        return Forecast(declared.table, "make", "; ".join(dict.fromkeys(found.values())))
    tables = declared.until if declared.lasting else dict.fromkeys(declared.upstream.values())
    changing = [str(table) for table in tables if table in coming]
    if changing:
        return Forecast(declared.table, "maybe", f"{' or '.join(sorted(changing))} changes")
    if declared.lasting:
        return Forecast(declared.table, "keep", stale_lasting(lake, declared, upstream))
    return Forecast(declared.table, "keep", "")


def _is_new(lake: Lake, declared: Declaration) -> bool:
    try:
        lake.published(declared.table)
    except TableNotFound:
        return True
    except DamagedFile:
        pass
    return False


def _parts(
    asset: dg.AssetsDefinition,
    declared: Declaration,
    batch: RunBatch,
    nodes: dict[dg.AssetKey, dg.AssetsDefinition],
    instance: dg.DagsterInstance,
) -> PartitionSelection:
    """The partitions that the run of `batch` would write."""
    own = asset.partitions_def
    if own is None or batch.span is None:
        return PartitionSelection()
    keys = own.get_partition_keys(dynamic_partitions_store=instance)
    first, last = map(keys.index, batch.span)

    def partitions_of(key: dg.AssetKey) -> dg.PartitionsDefinition[str] | None:
        return nodes[key].partitions_def if key in nodes else None

    return PartitionSelection(tuple(keys[first : last + 1]), copartitioned(declared, own, partitions_of))
