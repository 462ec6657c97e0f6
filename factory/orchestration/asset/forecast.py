"""Forecast a run table by table: the run makes it, keeps it, or decides once it knows its input.

The forecast reads the metadata of tables and lists the files of sources; it starts no Spark. The verdict on
a table is `maybe` if nothing but its input changes, and the run makes that first: the run keeps the table if
its input comes out with the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import dagster as dg

from factory.errors import DamagedFile, TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.asset.declaration import Declaration, PartitionSelection
from factory.orchestration.asset.reuse import NEW, Request, listings_of, reasons, stale_lasting
from factory.orchestration.asset.table_asset import copartitioned, declaration_of
from factory.orchestration.host.partitions import RunBatch
from factory.orchestration.keys import key_of

Expectation = Literal["make", "maybe", "keep"]


@dataclass(frozen=True)
class Forecast:
    """The verdict on a table, and its reason; a kept table may have none.

    `group` is the dataset, variant, dedup group or models that the table belongs to. `roots` are the tables
    that the run makes and on whose content a `maybe` depends, perhaps through tables between.
    """

    table: TableName
    group: str
    verdict: Expectation
    reason: str
    roots: tuple[TableName, ...] = ()


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
    roots: dict[TableName, frozenset[TableName]] = {}  # of the tables that the run makes earlier, or may make
    for batch in runs:
        for asset in dict.fromkeys(nodes[key] for key in batch.keys):
            declared = declaration_of(asset)
            request = Request.of(declared, batch.keys, reuse=reuse)
            parts = _parts(asset, declared, batch, nodes, instance)
            group = asset.group_names_by_key[key_of(declared.table)]
            one = replace(_of(lake, declared, parts, request, roots), group=group)
            found.append(one)
            if one.verdict != "keep":
                behind = frozenset(one.roots or [declared.table])
                roots |= dict.fromkeys((output.table for output in declared.outputs), behind)
    return found


def _of(
    lake: Lake,
    declared: Declaration,
    parts: PartitionSelection,
    request: Request,
    roots: Mapping[TableName, frozenset[TableName]],
) -> Forecast:
    upstream: dict[str, Published] = {}
    for table in dict.fromkeys(declared.upstream.values()):
        try:
            upstream[str(table)] = lake.published(table)
        except TableNotFound:
            reason = NEW if _is_new(lake, declared) else f"{table} is new"
            return Forecast(declared.table, "", "make", reason)
        except DamagedFile:
            return Forecast(declared.table, "", "make", f"{table} is damaged")
    found = reasons(lake, declared, upstream, parts, request, listings_of(declared, parts.keys))
    if found:
        return Forecast(declared.table, "", "make", "; ".join(dict.fromkeys(found.values())))
    tables = declared.until if declared.lasting else dict.fromkeys(declared.upstream.values())
    changing = sorted(table for table in tables if table in roots)
    if changing:
        behind = sorted(frozenset().union(*(roots[table] for table in changing)))
        reason = f"{' or '.join(map(str, changing))} changes"
        return Forecast(declared.table, "", "maybe", reason, tuple(behind))
    if declared.lasting:
        return Forecast(declared.table, "", "keep", stale_lasting(lake, declared, upstream))
    return Forecast(declared.table, "", "keep", "")


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
