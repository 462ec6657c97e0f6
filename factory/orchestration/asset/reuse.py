"""Which tables and partitions a run may keep, because code, configuration and upstream content are unchanged.

A source is always read again, because its files may have changed. A partition is compared by the snapshot
that last replaced it, and with the same partition of upstream tables that share its partitions. A table with
a `growth` above one is frozen until the rows of its upstream tables have grown or shrunk by that factor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from factory.errors import DamagedFile, TableNotFound
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake, Partitions, Published
from factory.orchestration.asset.declaration import Declaration, PartitionSelection


def outdated(
    lake: Lake, declared: Declaration, upstream: Mapping[str, Published], parts: PartitionSelection
) -> PartitionSelection:
    """Return the part of `parts` that must be written again; `upstream` are the pinned snapshots by table."""
    if not upstream:
        return parts
    partitions = lru_cache(maxsize=None)(lake.partitions)

    def stands(key: str | None) -> bool:
        try:
            return all(
                _stands(_lineage(lake, output.table, key, partitions), key) for output in declared.outputs
            )
        except (TableNotFound, DamagedFile):
            return False

    def _stands(lineage: Lineage | None, key: str | None) -> bool:
        if lineage is None or not _made_alike(lineage, declared):
            return False
        return _same_upstream(lineage, key) or _frozen(lake, lineage, upstream, declared.growth)

    def _same_upstream(lineage: Lineage, key: str | None) -> bool:
        if set(lineage.upstream) != set(upstream):
            return False
        for table, snapshot_id in lineage.upstream.items():
            name, now = TableName.parse(table), upstream[table]
            if snapshot_id == now.snapshot_id:
                continue
            before = lake.published_at(name, snapshot_id)
            if key is not None and name in parts.alike:
                of_key = [partitions(name, of.snapshot_id).content(key) for of in (before, now)]
                if of_key[0] is None or of_key[0] != of_key[1]:
                    return False
            # A snapshot of another writer has no fingerprint to compare.
            elif before.lineage.content != now.lineage.content or not now.lineage.content:
                return False
        return True

    return parts.only(key for key in parts.keys if not stands(key))


def made_alike(lake: Lake, declared: Declaration) -> Published | None:
    """Return the main table if the code and configuration of `declared` wrote all of it, else None.

    Its upstream tables may have changed since; the caller must know which of its rows still hold.
    """
    try:
        published = lake.published(declared.table)
    except (TableNotFound, DamagedFile):
        return None
    return published if _made_alike(published.lineage, declared) else None


def _made_alike(lineage: Lineage, declared: Declaration) -> bool:
    return (lineage.code_version, lineage.config) == (declared.code_version, declared.config)


def _frozen(lake: Lake, lineage: Lineage, upstream: Mapping[str, Published], growth: float) -> bool:
    """Whether the upstream rows have changed by less than the factor `growth`, within the same tables."""
    if growth == 1:
        return False
    before = sum(
        lake.published_at(TableName.parse(table), snapshot_id).rows
        for table, snapshot_id in lineage.upstream.items()
    )
    now = sum(published.rows for published in upstream.values())
    in_old = sum(published.rows for table, published in upstream.items() if table in lineage.upstream)
    return before < growth * in_old and now < growth * min(before, in_old)


def _lineage(
    lake: Lake, table: TableName, key: str | None, partitions: Callable[[TableName], Partitions]
) -> Lineage | None:
    """Return the lineage of a table or of its partition `key`; None if it was never written."""
    return lake.published(table).lineage if key is None else partitions(table).lineage.get(key)
