"""The tables in the catalog of an embedded lake, without PyIceberg, because its import takes a second.

The catalog is a SQLite file. A damaged one, and the catalog of a server, are left to `factory.lake.tables`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from factory.errors import DamagedFile
from factory.lake.lost_catalog import MARK_OR_NAME, require_known_tables
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.lake.place import require_place
from factory.settings import CATALOG_NAME, Settings

_TABLES = "select table_namespace, table_name, metadata_location from iceberg_tables where catalog_name = ?"
_LOCK_WAIT_S = 5


def table_files(settings: Settings) -> dict[TableName, str] | None:
    """Return the metadata file of each table, in the order of the pipeline, then by name.

    Empty for a lake that is still to be made. None if the lake is not embedded, or if its catalog is anything
    but a sound file. Raises LakeMoved for a copied or moved lake, and what `require_place` raises.
    """
    if not settings.embedded:
        return None
    require_place(settings)
    database = settings.files.catalog_database
    if not database.exists():
        return {}
    try:
        uri = f"{database.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT_S)) as catalog:
            if catalog.execute("pragma integrity_check(1)").fetchone() != ("ok",):
                return None
            require_known_tables(settings, lambda: catalog.execute(MARK_OR_NAME).fetchone() is not None)
            rows = catalog.execute(_TABLES, (CATALOG_NAME,)).fetchall()
        files = {TableName(namespace, name): file for namespace, name, file in rows if _is_ours(namespace)}
    except (ValueError, sqlite3.Error, DamagedFile):
        return None
    order = list(STAGE_OF_NAMESPACE)
    return dict(sorted(files.items(), key=lambda entry: (order.index(entry[0].namespace), entry[0].name)))


def _is_ours(namespace: str) -> bool:
    return namespace in STAGE_OF_NAMESPACE
