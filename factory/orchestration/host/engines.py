"""One SQLAlchemy engine for each of Dagster's SQLite files, and during a run one connection.

An engine knows its dialect and its compiled statements. Dagster makes one whenever it stores or reads an
event, many times for each table, and compiles the same statements for each.

Outside a run, connections are opened and closed as before, so a file may be moved or deleted meanwhile. In a
run (`kept_connections`) each file stays open: closing the only connection makes SQLite copy its log into the
file, sync it and delete the log, several times an event. Each event has a transaction of its own as before:
other processes see it at once, and it survives a kill of this process. A failing machine may lose the newest
events, which the tables outlive.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import ModuleType
from typing import Any

from dagster._core.storage.event_log.sqlite import sqlite_event_log  # none of it is exported elsewhere
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from sqlalchemy import event
from sqlalchemy.engine import Engine
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


class _Engines:
    """What takes the place of `create_engine` in a module of Dagster."""

    def __init__(self, module: ModuleType) -> None:
        self._create = module.create_engine
        self._engines: dict[str, Engine] = {}
        self._connected: dict[str, Engine] | None = None
        self._n_runs = 0

    def __call__(self, url: str, **options: Any) -> Engine:
        """Return the engine of a file; each module asks for all of its own with the same options."""
        if self._connected is not None:
            if url not in self._connected:
                self._connected[url] = self._keeping(url, **options)
            return self._connected[url]
        engine = self._engines.get(url)
        if engine is None:
            engine = self._engines[url] = self._create(url, **options)
            for oldest in list(self._engines)[:-MOST_ENGINES]:
                self._engines.pop(oldest, None)
        return engine

    def keep(self) -> None:
        """Keep a connection to each file from now on."""
        self._n_runs += 1
        self._connected = {} if self._connected is None else self._connected

    def release(self) -> None:
        """Close the connections and keep none, unless another run of this process uses them."""
        self._n_runs -= 1
        if self._n_runs:
            return
        engines, self._connected = self._connected or {}, None
        for engine in engines.values():
            Engine.dispose(engine)

    def _keeping(self, url: str, **options: Any) -> Engine:
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


class _Touch:
    """Tells who watches a file, as Dagster's page does, that its log beside it has grown."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, _connection: object, _record: object) -> None:
        with suppress(OSError):
            os.utime(self._path)
