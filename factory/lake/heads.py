"""The published state of every table of an embedded lake, without PyIceberg, whose import takes a second.

The catalog is a SQLite file that names one JSON file for each table, and a listing needs a few of its fields.
Anything unusual, from a damaged file to a server catalog, is left to `factory.lake.tables`, which names the
damage. Of a metadata file the newest snapshot is read and the checksum is compared, if there is one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from factory.errors import DamagedFile
from factory.lake.files.checksums import require_whole
from factory.lake.files.location import local_path
from factory.lake.lineage import Lineage
from factory.lake.lost_catalog import MARK_OR_NAME, require_known_tables
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.place import require_place
from factory.lake.tables import Published
from factory.settings import CATALOG_NAME, Settings

_TABLES = "select table_namespace, table_name, metadata_location from iceberg_tables where catalog_name = ?"
_REQUIRED = {"format-version", "table-uuid", "location", "schemas", "partition-specs", "properties"}
_UNUSUAL = (OSError, ValueError, LookupError, TypeError, AttributeError, sqlite3.Error, DamagedFile)
_LOCK_WAIT_S = 5


def published_heads(settings: Settings) -> list[Published] | None:
    """Return the newest published state of each table, in the order of the pipeline, then by name.

    None if the lake is not embedded, has no catalog yet, or holds anything that this module does not read.
    Raises LakeMoved for a copied or moved lake. The states lack the properties of their rows.
    """
    database = settings.files.catalog_database
    if not settings.embedded:
        return None
    require_place(settings)
    if not database.exists():
        return None
    try:
        uri = f"{database.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT_S)) as catalog:
            if catalog.execute("pragma integrity_check(1)").fetchone() != ("ok",):
                return None
            require_known_tables(settings, lambda: catalog.execute(MARK_OR_NAME).fetchone() is not None)
            files = {
                TableName(namespace, name): file
                for namespace, name, file in catalog.execute(_TABLES, (CATALOG_NAME,))
                if namespace in STAGE_OF_NAMESPACE
            }
        order = list(STAGE_OF_NAMESPACE)
        names = sorted(files, key=lambda table: (order.index(table.namespace), table.name))
        heads = [_head(name, _metadata(files[name])) for name in names]
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
