"""The published state of every table of an embedded lake, without the slow import of PyIceberg.

The catalog is a SQLite file that names one JSON file for each table, and a listing needs a few of its fields.
Anything unusual, from a damaged file to a server catalog, is left to `factory.lake.tables`, which names the
damage. Reads the newest snapshot in a metadata file, and compares the file's checksum, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factory.errors import DamagedFile
from factory.lake.catalog_file import table_files
from factory.lake.files.checksums import require_whole
from factory.lake.files.location import local_path
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.tables import Published
from factory.settings import Settings

_REQUIRED = {"format-version", "table-uuid", "location", "schemas", "partition-specs", "properties"}
_UNUSUAL = (OSError, ValueError, LookupError, TypeError, AttributeError, DamagedFile)


def published_heads(settings: Settings) -> list[Published] | None:
    """Return the newest published state of each table, in the order of the pipeline, then by name.

    None if the lake is not embedded, has no catalog yet, or holds anything that this module does not read.
    Raises LakeMoved for a copied or moved lake. The states lack the properties of their rows.
    """
    files = table_files(settings)
    if files is None or not settings.files.catalog_database.exists():
        return None
    try:
        heads = [_head(name, _metadata(file)) for name, file in files.items()]
    except _UNUSUAL:
        return None
    return [head for head in heads if head is not None]


def _metadata(location: str) -> Mapping[str, Any]:
    """Return the metadata of a table; raises one of `_UNUSUAL` if they are not a sound local file."""
    path = local_path(location)
    if path is None:
        raise ValueError("not a local file")
    require_whole(str(path))
    metadata: dict[str, Any] = json.loads(Path(path).read_bytes())
    if not metadata.keys() >= _REQUIRED:
        raise ValueError("not the metadata of a table")
    return metadata


def _head(name: TableName, metadata: Mapping[str, Any]) -> Published | None:
    """Return the newest snapshot of main, None if nothing was published."""
    current = metadata.get("current-snapshot-id")
    if current in (None, -1):
        return None
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    snapshot = snapshots[current]
    summary: dict[str, str] = snapshot.get("summary") or {}
    return Published(
        table=name,
        snapshot_id=current,
        rows=int(summary.get("total-records", 0)),
        size_bytes=int(summary.get("total-files-size", 0)),
        timestamp_ms=snapshot["timestamp-ms"],
        lineage=Lineage.from_properties(summary),
    )
