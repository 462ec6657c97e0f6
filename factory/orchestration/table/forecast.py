"""Forecast a run table by table: the run makes it, keeps it, or decides once it knows its input.

The forecast reads the metadata of tables and lists the files of sources; it starts no Spark. The verdict on
a table is `maybe` if nothing but its input changes, and the run makes that first: the run keeps the table if
its input comes out with the content that the table was made from. A table that is made on demand is left out
(`leave`) below the size that it is declared for; before its input is made, that is a `maybe`, too.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import dagster as dg

from factory.counted import counted
from factory.errors import DamagedFile, TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake, Published
from factory.orchestration.host.partitions import RunBatch
from factory.orchestration.keys import table_of
from factory.orchestration.table.declaration import Declaration, PartitionSelection
from factory.orchestration.table.reuse import (
    DAMAGED,
    Reasons,
    Request,
    differing_tables,
    listings_of,
    omission,
    reasons,
    stale_lasting,
)
from factory.orchestration.table.table_asset import copartitioned, declaration_of

Expectation = Literal["make", "maybe", "keep", "leave"]


@dataclass(frozen=True)
class Forecast:
    """The verdict on a table, and its reason; a kept table may have none.

    `group` is the dataset, variant, dedup group or models that the table belongs to. A `maybe` depends on the
    content of the `roots`, tables that the run makes first, perhaps through tables between. It has no roots
    if the reason alone names the dependency: a table on demand depends on the rows of another.
    """

    table: TableName
    group: str
    verdict: Expectation
    reason: str
    roots: tuple[TableName, ...] = ()
    on_demand: bool = False


def forecast(
    lake: Lake,
    assets: Iterable[dg.AssetsDefinition],
    runs: Sequence[RunBatch],
    instance: dg.DagsterInstance,
    *,
    reuse: bool,
    named_tables: Container[TableName] = (),
) -> list[Forecast]:
    """Return a forecast of every main table of `runs`, upstream first; `instance` knows the partitions.

    The names of `named_tables` stand in the selection.
    """
    nodes = {key: asset for asset in assets for key in asset.keys}
    found: list[Forecast] = []
    roots: dict[TableName, frozenset[TableName]] = {}  # of the tables that the run makes earlier, or may make
    for batch in runs:
        for asset in dict.fromkeys(nodes[key] for key in batch.keys):
            declared = declaration_of(asset)
            readers = set(map(table_of, batch.readers))
            request = Request.of(
                declared, batch.keys, reuse=reuse, named_tables=named_tables, readers=readers
            )
            parts = _parts(asset, declared, batch, nodes, instance)
            one = replace(_of(lake, declared, parts, request, roots), group=declared.group)
            found.append(one)
            if one.verdict in ("make", "maybe"):
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
    if (verdict := _on_demand(lake, declared, request, roots)) is not None:
        return verdict
    upstream: dict[str, Published] = {}
    absent: dict[str, str] = {}  # tables that the run makes first
    for table in dict.fromkeys(declared.upstream.values()):
        try:
            upstream[str(table)] = lake.published(table)
        except TableNotFound:
            absent[str(table)] = "is new"
        except DamagedFile:
            absent[str(table)] = "is damaged"
    tables = declared.until if declared.lasting else dict.fromkeys(declared.upstream.values())
    changing = sorted(table for table in tables if table in roots)
    listings = listings_of(declared, parts.keys)

    def found_without(pending: Iterable[TableName]) -> Reasons:
        return reasons(lake, declared, upstream, parts, request, listings, frozenset(pending), absent)

    found = found_without(changing)
    if DAMAGED not in found.values() and omission(lake, declared, request) is not None:
        return Forecast(declared.table, "", "keep", stale_lasting(lake, declared, upstream, absent))
    if found:
        return Forecast(declared.table, "", "make", "; ".join(dict.fromkeys(found.values())))
    if changing and found_without(()):
        different_tables = differing_tables(lake, declared, upstream, parts, request)
        # A table that grows is frozen while its input is pending, so another table may be what differs.
        tables_named = [table for table in changing if table in different_tables] or sorted(different_tables)
        names = " or ".join(map(str, tables_named))
        return Forecast(declared.table, "", "maybe", f"{names} still differs from what was read")
    if changing:
        behind = sorted(frozenset().union(*(roots[table] for table in changing)))
        reason = f"{' or '.join(map(str, changing))} changes"
        return Forecast(declared.table, "", "maybe", reason, tuple(behind))
    if declared.lasting:
        return Forecast(declared.table, "", "keep", stale_lasting(lake, declared, upstream, absent))
    return Forecast(declared.table, "", "keep", "")


def _on_demand(
    lake: Lake,
    declared: Declaration,
    request: Request,
    roots: Mapping[TableName, frozenset[TableName]],
) -> Forecast | None:
    """Return the verdict on a table that may be left out, None if it is made or kept like any other."""
    demand, table = declared.on_demand, declared.table
    if demand is None or request.by_itself or request.by_name:
        return None
    is_new = _is_new(lake, table)
    if not is_new and not _is_intact(lake, table):  # the run makes it at any size
        return None
    condition = f"{demand.counted_table} has {counted(demand.rows, demand.noun)}"
    try:
        too_few = omission(lake, declared, request)
    except (TableNotFound, DamagedFile):  # the run makes it first
        return Forecast(table, "", "maybe", condition, on_demand=True)
    if demand.counted_table in roots and (too_few is not None or is_new):
        now = "" if too_few is None else f" ({too_few.rows:,} now)"
        return Forecast(table, "", "maybe", condition + now, on_demand=True)
    return Forecast(table, "", "leave", too_few.reason) if too_few is not None and is_new else None


def _is_new(lake: Lake, table: TableName) -> bool:
    try:
        lake.published(table)
    except TableNotFound:
        return True
    except DamagedFile:
        pass
    return False


def _is_intact(lake: Lake, table: TableName) -> bool:
    try:
        lake.published(table)
    except (TableNotFound, DamagedFile):
        return False
    return True


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
