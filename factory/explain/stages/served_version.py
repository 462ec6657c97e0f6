"""The tables behind the rows that a blend serves, each at the snapshot that these rows were made from.

A blend keeps its rows whatever becomes of their source, so the newest tables may hold another text of a
document, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from blender.opened.blend import Blend
from factory.explain.stages.removals import Read
from factory.explain.upstream import made_of
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.tables import Lake


def served_version(lake: Lake, table: TableName, snapshot_id: int) -> Read | None:
    """Return the tables behind a packed table at a snapshot, for the dataset or variant that it packs.

    None for a table that no raw table was made into, or whose raw snapshot has expired.
    """
    if table.namespace != "packed":
        return None
    dataset = names.dataset_of_packed(table)
    snapshots = dict(made_of(lake, table, snapshot_id)) | {table: snapshot_id}
    if names.raw(dataset) not in snapshots:
        return None
    placements = names.placements(table.name)
    beside = lake.published_by(placements, lake.published_at(table, snapshot_id).lineage.run_id)
    if beside is not None:
        snapshots[placements] = beside.snapshot_id
    return Read(lake, snapshots.keys(), snapshots, dataset)


def served_versions(lake: Lake, blends: Iterable[Blend]) -> Iterator[Read]:
    """Yield the version behind each packed table that the blends serve, once for each of its snapshots."""
    sources = (source for blend in blends for source in blend.sources)
    heads = dict.fromkeys((source.config.table, source.reader.snapshot_id) for source in sources)
    versions = (served_version(lake, TableName.parse(table), snapshot) for table, snapshot in heads)
    yield from filter(None, versions)
