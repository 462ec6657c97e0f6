"""Refuse an embedded lake that has lost its catalog, which would otherwise look like a new lake.

The catalog alone knows which metadata file of a table is the current one. Without it the next run would
publish into the folders of the lost tables. A lake has lost its catalog if its record (`lake.json`) and the
metadata of a table are there, and the catalog is missing or has never had a namespace: every table is made
after its namespace, and dropping a table keeps the namespace.

A new home may take over the warehouse of a lost one. It has no record yet, so it gets a catalog, and a mark
in it: this catalog may stay empty although the warehouse has tables of the lost home.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from factory.errors import DamagedFile
from factory.lake.files.location import local_path
from factory.lake.servers import unusable
from factory.lake.store import object_store
from factory.settings import Settings

_METADATA = ".metadata.json"
_MARK = "pragma user_version = 1"
MARK_OR_NAME = """
select 1 from pragma_user_version where user_version = 1
union all select 1 from iceberg_namespace_properties union all select 1 from iceberg_tables limit 1
"""
"""A query that has a row if a catalog is marked, or has a namespace or a table."""


def require_catalog_file(settings: Settings) -> None:
    """Raise DamagedFile if an embedded lake holds tables but no catalog file.

    Costs one stat if the file is there, and searches the warehouse only if a lake was recorded without one.
    """
    database = settings.files.catalog_database
    if database.exists() or not settings.files.lake_record.exists():
        return
    table = _table_folder(settings)
    # Another process may have created the catalog and its first table since the first look.
    if table is not None and not database.exists():
        raise _lost(settings, table, "is missing")


def require_known_tables(settings: Settings, is_in_use: Callable[[], bool]) -> None:
    """Raise DamagedFile if an embedded lake holds tables but its catalog has never named one.

    A release that did not refuse a lost catalog made such an empty one in its place, and SQLite takes a file
    of no bytes for an empty database. Costs one query, `is_in_use`, if the catalog has a namespace.
    """
    if is_in_use() or not settings.files.lake_record.exists():
        return
    table = _table_folder(settings)
    if table is not None and not is_in_use():
        raise _lost(settings, table, "names no table")


def mark_take_over(settings: Settings, new_catalog: Path) -> None:
    """Mark the catalog of a new home if its warehouse holds tables of a lost one."""
    if _table_folder(settings) is not None:
        with closing(sqlite3.connect(new_catalog)) as connection:
            connection.execute(_MARK)


def _lost(settings: Settings, table: str, problem: str) -> DamagedFile:
    database = settings.files.catalog_database
    return DamagedFile(
        f"The lake in {settings.home} has lost its catalog: {database} {problem}, but the warehouse "
        f"{settings.warehouse_uri} holds tables such as {table}. Restore {database.name} from a backup "
        "of the lake, or set FACTORY_HOME to another folder."
    )


def _table_folder(settings: Settings) -> str | None:
    """Return the folder of a table below the warehouse, such as `raw/web`, or None if it holds no table."""
    warehouse = local_path(settings.warehouse_uri)
    if warehouse is not None:
        metadata = next(Path(warehouse).glob(f"*/*/metadata/*{_METADATA}"), None)
        return None if metadata is None else metadata.parents[1].relative_to(warehouse).as_posix()
    store = object_store(settings)
    try:
        tables = (table for namespace in _folders(store) for table in _folders(store, namespace))
        return next((table for table in tables if _has_metadata(store, table)), None)
    except (BaseError, FileNotFoundError) as error:  # the second where the bucket is missing
        raise unusable(error, settings) from error


def _folders(store: ObjectStore, folder: str | None = None) -> list[str]:
    return sorted(obstore.list_with_delimiter(store, folder)["common_prefixes"])


def _has_metadata(store: ObjectStore, table: str) -> bool:
    objects = obstore.list_with_delimiter(store, f"{table}/metadata")["objects"]
    return any(entry["path"].endswith(_METADATA) for entry in objects)
