"""The tables behind the rows that a blend serves, each at the snapshot that these rows were made from.

A blend keeps its rows whatever becomes of their source, so the newest tables may hold another text of a
document, or none.
"""

from __future__ import annotations

from factory.errors import DamagedFile, TableNotFound
from factory.explain.stages.removals import Read
from factory.explain.upstream import made_of
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake


def served_version(lake: Lake, table: TableName, snapshot_id: int) -> Read | None:
    """Return the tables behind a packed table at a snapshot, for the dataset or variant that it packs.

    None for a table that no raw table was made into, and if a snapshot that must be read has expired or is
    damaged.
    """
    if table.namespace != "packed":
        return None
    dataset = names.dataset_of_packed(table)
    snapshots = dict(made_of(lake, table, snapshot_id)) | {table: snapshot_id}
    if names.raw(dataset) not in snapshots:
        return None
    placements = names.placements(table.name)
    try:
        beside = lake.published_by(placements, lake.published_at(table, snapshot_id).lineage.run_id)
    except (TableNotFound, DamagedFile):
        return None
    if beside is None:
        return None
    snapshots[placements] = beside.snapshot_id
    return Read(lake, snapshots.keys(), snapshots, dataset)
