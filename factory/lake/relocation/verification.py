"""Whether a table at its new place has the rows on record, and all files of its snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table

from factory.errors import DamagedFile, SourceChanged
from factory.lake.files.damage import UNPARSED, damaged_metadata, planning
from factory.lake.files.location import local_path
from factory.lake.files.stream import stream
from factory.lake.fingerprint import fingerprint
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.relocation.moves import Move, is_inside
from factory.lake.schemas.base import UNFINGERPRINTED
from factory.lake.schemas.ingest import TEXT_AT
from factory.lake.tables import said_of
from factory.settings import CATALOG_NAME


@dataclass(frozen=True)
class Verified:
    """The rows and bytes that were read, and why the fingerprint was not compared, if it was not."""

    rows: int = 0
    read_bytes: int = 0
    caveat: str = ""


def load_table(io: FileIO, name: TableName, metadata_location: str) -> Table:
    """Load a table from a metadata file that no catalog names yet; raises DamagedFile."""
    try:
        metadata = FromInputFile.table_metadata(io.new_input(metadata_location))
    except UNPARSED as error:
        raise damaged_metadata(name, metadata_location, error) from error
    return Table(name.identifier, metadata, metadata_location, io, NoopCatalog(CATALOG_NAME))


def data_files(table: Table) -> dict[str, int]:
    """Return the size of each data file that any snapshot of a table reads, by location."""
    sizes: dict[str, int] = {}
    seen: set[str] = set()
    for snapshot in table.snapshots():
        with planning(table, snapshot):
            for manifest in snapshot.manifests(table.io):
                if manifest.manifest_path not in seen:
                    seen.add(manifest.manifest_path)
                    for entry in manifest.fetch_manifest_entry(table.io):
                        sizes[entry.data_file.file_path] = entry.data_file.file_size_in_bytes
    return sizes


def verify(table: Table, move: Move) -> Verified:
    """Read a table at its new place and compare it with its own record.

    Raises DamagedFile if a file of a snapshot is missing, has another size or is damaged, or if the rows of
    the current snapshot have another fingerprint than the one on record.
    """
    name = ".".join(table.name())
    for location, size in data_files(table).items():
        assert not move.concerns(location), f"{location} of {name} was not moved"
        if is_inside(location, move.new):
            _require_file(table.io, name, location, size)
    snapshot = table.current_snapshot()
    recorded = Lineage.from_properties(said_of(table, snapshot)).content if snapshot else ""
    if snapshot is None:
        return Verified()
    if not recorded:
        return Verified(
            caveat=f"The rows of {name} were not compared, because it has no fingerprint on record."
        )
    schema = table.schema().as_arrow()
    columns = sorted(set(schema.names) - UNFINGERPRINTED - {TEXT_AT.name})
    projection = schema.empty_table().select(columns).schema
    try:
        content = fingerprint(stream(table, snapshot.snapshot_id, projection), columns)
    except SourceChanged as error:  # a file of the user, outside the lake
        return Verified(caveat=f"The rows of {name} were not compared. {error}")
    if str(content) != recorded:
        raise DamagedFile(
            f"Table {name} has content {content} at {table.location()}, and {recorded} on record. "
            "Copy the lake again while no run writes it."
        )
    summary = snapshot.summary.additional_properties if snapshot.summary else {}
    return Verified(content.rows, int(summary.get("total-files-size", 0)))


def _require_file(io: FileIO, name: str, location: str, size: int) -> None:
    file = local_path(location)
    try:
        n_bytes = Path(file).stat().st_size if file is not None else len(io.new_input(location))
    except FileNotFoundError as error:
        raise DamagedFile(f"File {location} of table {name} is missing. Copy the lake again.") from error
    if n_bytes != size:
        raise DamagedFile(
            f"File {location} of table {name} has {n_bytes:,} bytes instead of {size:,}. Copy the lake again."
        )
