"""The tables that a snapshot of a table was made from, as its lineage tells."""

from __future__ import annotations

from collections.abc import Iterator

from factory.errors import TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake


def made_of(lake: Lake, table: TableName, snapshot_id: int) -> Iterator[tuple[TableName, int]]:
    """Yield every upstream table of a snapshot with the snapshot that was read.

    The walk ends at expired snapshots and at models: their training documents, which include those of a
    variant's siblings, are not documents of the table.
    """
    waiting, seen = [(table, snapshot_id)], {table}
    while waiting:
        reader, read_by = waiting.pop()
        try:
            upstream = lake.published_at(reader, read_by).lineage.upstream
        except TableNotFound:
            continue
        for name, snapshot in sorted(upstream.items()):
            source = TableName.parse(name)
            if source.namespace != "models" and source not in seen and _is_there(lake, source, snapshot):
                seen.add(source)
                waiting.append((source, snapshot))
                yield source, snapshot


def _is_there(lake: Lake, table: TableName, snapshot_id: int) -> bool:
    return lake.exists(table) and lake.table(table).snapshot_by_id(snapshot_id) is not None
