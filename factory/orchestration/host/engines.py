"""One SQLAlchemy engine for each of Dagster's SQLite files, and during a run one connection.

An engine knows its dialect and its compiled statements. Dagster makes one whenever it stores or reads an
event, many times for each table, and compiles the same statements for each.

Outside a run, connections are opened and closed as before, so a file may be moved or deleted meanwhile. In a
run (`kept_connections`) each file stays open: closing the only connection makes SQLite copy its log into the
file, sync it and delete the log, several times an event. Each event has a transaction of its own as before:
other processes see it at once, and it survives a kill of this process. A failing machine may lose the newest
events, which the tables outlive. A file that was deleted is made again; do not put another file in its place
during a run, because the log next to it belongs to the old one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from dagster._core.storage.event_log.sqlite import sqlite_event_log  # none of it is exported elsewhere
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.pool import QueuePool

MOST_ENGINES = 32
"""More files have an engine for the newest of them: each run has a file of its own."""


@cache
def reuse_engines() -> list[_Engines]:
    """Let Dagster's storage of runs and events in this process make each engine once."""
    engines = []
    for module in (sqlite_event_log, sqlite_run_storage):
        engines.append(_Engines(module))
        module.create_engine = engines[-1]  # type: ignore[attr-defined]
    return engines


@contextmanager
def kept_connections() -> Iterator[None]:
    """Let this process keep a connection to each of Dagster's SQLite files until the end of the block."""
    factories = reuse_engines()
    for factory in factories:
        factory.keep()
    try:
        yield
    finally:
        for factory in factories:
            factory.release()


@dataclass
class _KeptEngine:
    """The engine of a file that stays open, and which file that is; None until it exists."""

    engine: Engine
    file: tuple[int, int] | None

    def is_of(self, file: tuple[int, int] | None) -> bool:
        """Whether this is still the engine of the file at its path."""
        self.file = self.file or file
        return self.file == file


class _Engines:
    """What takes the place of `create_engine` in a module of Dagster."""

    def __init__(self, module: ModuleType) -> None:
        self._create = module.create_engine
        self._engines: dict[str, Engine] = {}
        self._kept: dict[str, _KeptEngine] | None = None
        self._n_runs = 0

    def __call__(self, url: str, **options: Any) -> Engine:
        """Return the engine of a file; each module asks for all of its own with the same options."""
        if self._kept is not None:
            return self._keeping(self._kept, url, **options)
        engine = self._engines.get(url)
        if engine is None:
            engine = self._engines[url] = self._create(url, **options)
            for oldest in list(self._engines)[:-MOST_ENGINES]:
                self._engines.pop(oldest, None)
        return engine

    def keep(self) -> None:
        """Keep a connection to each file from now on."""
        self._n_runs += 1
        self._kept = {} if self._kept is None else self._kept

    def release(self) -> None:
        """Close the connections and keep none, unless another run of this process uses them."""
        self._n_runs -= 1
        if self._n_runs:
            return
        entries, self._kept = self._kept or {}, None
        for entry in entries.values():
            Engine.dispose(entry.engine)

    def _keeping(self, entries: dict[str, _KeptEngine], url: str, **options: Any) -> Engine:
        file = _file_at(make_url(url).database)
        if url in entries and not entries[url].is_of(file):
            Engine.dispose(entries.pop(url).engine)  # its log would be taken for that of the new file
        if url not in entries:
            entries[url] = _KeptEngine(self._connected(url, **options), file)
        return entries[url].engine

    def _connected(self, url: str, **options: Any) -> Engine:
        # A second thread opens a second connection, which is closed after use.
        pool = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": -1}
        engine = self._create(url, **options | pool)
        engine.dispose = _leave_open  # Dagster disposes of it after each event
        event.listen(engine, "connect", _sync_rarely)
        if engine.url.database:
            event.listen(engine, "checkin", _Touch(engine.url.database))
        return engine


def _leave_open(close: bool = True) -> None:
    """Stand in for `Engine.dispose` while connections are kept."""


def _sync_rarely(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


def _file_at(path: str | None) -> tuple[int, int] | None:
    if not path:
        return None
    with suppress(OSError):  # no file yet, or none any more
        status = Path(path).stat()
        return status.st_dev, status.st_ino
    return None


class _Touch:
    """Updates the time of a file, so that watchers such as Dagster's page notice a change in its log."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, _connection: object, _record: object) -> None:
        with suppress(OSError):  # watchers then notice the next change
            os.utime(self._path)
