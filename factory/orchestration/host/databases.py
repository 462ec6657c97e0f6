"""Dagster's databases of an embedded lake, created atomically and repaired if found half-made.

Dagster creates three SQLite files when a process first opens them. If two processes do so at once, one takes
the other's tables for an old release's: the file then names two versions and opens for nobody. A process
killed meanwhile leaves a file without a version. So the files are created under a lock in a folder of their
own and renamed.

    history/runs.db          runs with their tags
    history/runs/index.db    asset events; dynamic partitions
    schedules/schedules.db   schedules and sensors: state and ticks
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import sqlalchemy
from dagster._core.storage.event_log.schema import (
    SqlEventLogStorageMetadata,
)  # none of it is exported elsewhere
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage
from dagster._core.storage.sql import get_alembic_config, stamp_alembic_rev
from sqlalchemy.pool import NullPool

from factory.lake.lock import making
from factory.lake.sqlite import withheld

log = logging.getLogger(__name__)

_LOCK_WAIT_S = 60
_OF_SQLITE = ("", "-wal", "-shm")  # the suffixes of a database and its side files


@dataclass(frozen=True)
class _Database:
    """One of Dagster's files: its path, the function that opens (and creates) it, and its tables."""

    path: str
    open: Callable[[Path], object]
    module: ModuleType
    tables: sqlalchemy.MetaData


def _open_runs(folder: Path) -> None:
    storage = sqlite_run_storage.SqliteRunStorage.from_local(str(folder))
    storage.migrate()
    storage.optimize()


def _open_events(folder: Path) -> None:
    storage = sqlite_event_log.SqliteEventLogStorage(str(folder))
    storage.reindex_events()
    storage.reindex_assets()


def _open_schedules(folder: Path) -> None:
    storage = sqlite_schedule_storage.SqliteScheduleStorage.from_local(str(folder))
    storage.migrate()
    storage.optimize()


_DATABASES = (
    _Database("history/runs.db", _open_runs, sqlite_run_storage, RunStorageSqlMetadata),
    _Database("history/runs/index.db", _open_events, sqlite_event_log, SqlEventLogStorageMetadata),
    _Database("schedules/schedules.db", _open_schedules, sqlite_schedule_storage, ScheduleStorageSqlMetadata),
)


def make_records(home: Path) -> None:
    """Create Dagster's missing databases below `home` and repair half-made ones.

    Raises MachineError if `home` cannot be written, or if another process keeps a database locked.
    """
    with making(home) as folder:
        for database in _DATABASES:
            path, new = home / database.path, folder / database.path
            _mend(path, database)
            if path.exists():
                continue
            database.open(new.parent)
            path.parent.mkdir(parents=True, exist_ok=True)
            for suffix in _OF_SQLITE:  # side files of a database that somebody deleted
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            new.replace(path)


def _mend(path: Path, of: _Database) -> None:
    """Complete a half-made database; move an unreadable one aside."""
    try:
        found = _versions(path)
    except sqlite3.DatabaseError as error:
        if refused := withheld(path, error):
            raise refused from error
        aside = path.with_name(f"{path.name}.damaged")
        for suffix in _OF_SQLITE:
            with contextlib.suppress(FileNotFoundError):  # a database has them while it is written
                path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
        log.warning(
            "%s cannot be read (%s). It was moved to %s, and its run history is lost.", path, error, aside
        )
        return
    if len(found) == 1 or not path.exists():
        return
    said = f"names {len(found)} versions" if found else "names no version"
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", poolclass=NullPool)
    of.tables.create_all(engine)  # existing tables stay as they are
    for table in of.tables.tables.values():
        for index in table.indexes:
            index.create(engine, checkfirst=True)
    with engine.connect() as connection:
        if found:
            connection.execute(sqlalchemy.text("DELETE FROM alembic_version"))
        stamp_alembic_rev(get_alembic_config(of.module.__file__), connection)
        connection.commit()
    of.open(path.parent)
    log.warning("%s %s: two processes created it at once, or one was killed. Repaired.", path, said)


def _versions(path: Path) -> list[str]:
    """Return the versions that a database names: one if it is whole, none without a file."""
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path, timeout=_LOCK_WAIT_S)) as connection:
        named = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
        rows = connection.execute("SELECT version_num FROM alembic_version") if named else ()
        return [version for (version,) in rows]
