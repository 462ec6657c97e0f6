"""What need not be made again: tables, or partitions, whose code, configuration and upstream content stand.

A source is always made again, because the world may have changed. A partition is judged by the snapshot
that last replaced it, and against the same partition of the upstream tables that are partitioned alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from factory.errors import TableNotFound
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Lake, Partitions, Published
from factory.orchestration.declaration import Declaration, Parts


def outdated(lake: Lake, declared: Declaration, upstream: Mapping[str, Published], parts: Parts) -> Parts:
    """Those of `parts` that must be made again; `upstream` is what the run reads, by table."""
    if not upstream:
        return parts
    partitions = lru_cache(maxsize=None)(lake.partitions)

    def stands(key: str | None) -> bool:
        try:
            return all(
                _stands(_lineage(lake, output.table, key, partitions), key) for output in declared.outputs
            )
        except TableNotFound:
            return False

    def _stands(lineage: Lineage | None, key: str | None) -> bool:
        if lineage is None or set(lineage.upstream) != set(upstream):
            return False
        if (lineage.code_version, lineage.config) != (declared.code_version, declared.config):
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
            # Another writer leaves no fingerprint to compare.
            elif before.lineage.content != now.lineage.content or not now.lineage.content:
                return False
        return True

    return parts.only(key for key in parts.keys if not stands(key))


def _lineage(
    lake: Lake, table: TableName, key: str | None, partitions: Callable[[TableName], Partitions]
) -> Lineage | None:
    """The lineage of a table, or of its partition `key`; None where that was never made."""
    return lake.published(table).lineage if key is None else partitions(table).lineage.get(key)
