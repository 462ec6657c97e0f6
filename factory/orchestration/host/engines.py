"""One SQLAlchemy engine for each of Dagster's SQLite files, in place of one for each event.

An engine knows its dialect and its compiled statements. Dagster makes one whenever it stores or reads an
event, many times for each table, and compiles the same statements for each. Connections are opened and closed
as before, so a file may be moved or deleted meanwhile.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from dagster._core.storage.event_log.sqlite import sqlite_event_log  # none of it is exported elsewhere
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from sqlalchemy.engine import Engine

MOST_ENGINES = 32
"""More files have an engine for the newest of them: each run has a file of its own."""


@cache
def reuse_engines() -> None:
    """Let Dagster's storage of runs and events in this process make each engine once."""
    for module in (sqlite_event_log, sqlite_run_storage):
        module.create_engine = _Engines(module)  # type: ignore[attr-defined]


class _Engines:
    """What takes the place of `create_engine` in a module of Dagster."""

    def __init__(self, module: ModuleType) -> None:
        self._create = module.create_engine
        self._engines: dict[str, Engine] = {}

    def __call__(self, url: str, **options: Any) -> Engine:
        """Return the engine of a file; each module asks for all of its own with the same options."""
        engine = self._engines.get(url)
        if engine is None:
            engine = self._engines[url] = self._create(url, **options)
            for oldest in list(self._engines)[:-MOST_ENGINES]:
                self._engines.pop(oldest, None)
        return engine
