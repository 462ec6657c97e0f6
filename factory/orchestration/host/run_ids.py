"""The ids of runs in the records of an embedded lake, without Dagster, because its import takes a second.

Anything unusual, from damaged records to records that an edited `dagster.yaml` keeps elsewhere, is left to
Dagster.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from factory.errors import NotFound
from factory.lake.place import require_place
from factory.orchestration.host.dagster_file import unedited_body
from factory.settings import Settings

SEARCHED_RUNS = 1000  # by the beginning of their id
_SHOWN_RUNS = 5  # named in an error
_LOCK_WAIT_S = 5
_NEWEST = "select run_id from runs order by id desc limit ?"


def require_run(settings: Settings, run: str) -> None:
    """Raise NotFound, as `run_number` does, if the records of an embedded lake lack such a run."""
    if (ids := run_ids(settings)) is not None:
        run_number(ids, run)


def run_number(ids: Sequence[str], run: str) -> int:
    """Return the place of the id that begins with `run`; NotFound for none or several names the newest."""
    numbers = [number for number, run_id in enumerate(ids) if run_id.startswith(run)]
    if len(numbers) != 1:
        newest = ", ".join(ids[:_SHOWN_RUNS]) or "none"
        raise NotFound(f"{len(numbers)} runs have an id that begins with `{run}`. The newest runs: {newest}.")
    return numbers[0]


def run_ids(settings: Settings) -> list[str] | None:
    """Return the ids of the newest runs, newest first; None if only Dagster can tell.

    Raises LakeMoved for a copied or moved lake, and what `require_place` raises.
    """
    require_place(settings)
    if settings.dagster_uri:
        return None
    config, database = settings.files.dagster_config, settings.files.dagster_runs
    try:
        if config.exists() and unedited_body(config.read_text()) is None:
            return None
        if not database.exists():
            return []
        with closing(
            sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=_LOCK_WAIT_S)
        ) as records:
            return [run_id for (run_id,) in records.execute(_NEWEST, (SEARCHED_RUNS,))]
    except (OSError, ValueError, sqlite3.Error):
        return None
