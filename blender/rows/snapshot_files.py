"""The data files of a snapshot, from its manifests alone.

A reader that ignores deletes would serve deleted rows, so a snapshot with delete files is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from blender.errors import InvalidBlend, SourceGone
from factory.lake.files.damage import planning

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


@dataclass(frozen=True)
class TableFile:
    """A data file as the table names it."""

    path: str
    n_bytes: int
    n_rows: int


def snapshot_of(table: Table, snapshot_id: int) -> Snapshot:
    """A snapshot by id; raises SourceGone if it has expired."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        name = ".".join(table.name())
        raise SourceGone(
            f"Table {name} has no snapshot {snapshot_id}: it has expired. Create the blend again."
        )
    return snapshot


def snapshot_files(table: Table, snapshot_id: int) -> list[TableFile]:
    """The data files that have rows, in no particular order.

    Raises SourceGone for an expired snapshot, InvalidBlend for delete files and other formats than Parquet,
    and DamagedFile for a damaged manifest.
    """
    from pyiceberg.manifest import DataFileContent, FileFormat, ManifestContent

    name, found, snapshot = ".".join(table.name()), [], snapshot_of(table, snapshot_id)
    with planning(table, snapshot):
        entries = [
            (manifest, entry)
            for manifest in snapshot.manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io)
        ]
    for manifest, entry in entries:
        file = entry.data_file
        if manifest.content == ManifestContent.DELETES or file.content != DataFileContent.DATA:
            raise InvalidBlend(
                f"Table {name} has {_kind(file)} at snapshot {snapshot_id} ({file.file_path}), "
                "which Blender does not read. Rewrite its data files first."
            )
        if file.file_format != FileFormat.PARQUET:
            raise InvalidBlend(
                f"Table {name} keeps rows as {file.file_format} at snapshot {snapshot_id} "
                f"({file.file_path}). Rewrite its data files as Parquet first."
            )
        if file.record_count:
            found.append(TableFile(file.file_path, file.file_size_in_bytes, file.record_count))
    return found


def _kind(file: DataFile) -> str:
    from pyiceberg.manifest import DataFileContent, FileFormat

    if file.file_format == FileFormat.PUFFIN:
        return "deletion vectors"
    return "equality deletes" if file.content == DataFileContent.EQUALITY_DELETES else "position deletes"
