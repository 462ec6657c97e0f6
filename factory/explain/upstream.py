"""The tables that a snapshot of a table was made from, as its lineage tells."""

from __future__ import annotations

from collections.abc import Iterator

from factory.errors import DamagedFile, TableNotFound
from factory.lake.names import TableName
from factory.lake.tables import Lake


def made_of(lake: Lake, table: TableName, snapshot_id: int) -> Iterator[tuple[TableName, int]]:
    """Yield every upstream table of a snapshot with the snapshot that was read; each table is loaded once.

    The walk ends at expired snapshots, at damaged tables and at models: their training documents, also of a
    variant's siblings, are not documents of the table.
    """
    waiting, seen = [(table, snapshot_id)], {table}
    while waiting:
        reader, read_by = waiting.pop()
        try:
            upstream = lake.published_at(reader, read_by).lineage.upstream
        except (TableNotFound, DamagedFile):
            seen.discard(reader)  # another table may have read a snapshot of it that is there
            continue
        if reader != table:
            yield reader, read_by
        for name, snapshot in sorted(upstream.items()):
            source = TableName.parse(name)
            if source.namespace != "models" and source not in seen:
                seen.add(source)
                waiting.append((source, snapshot))
