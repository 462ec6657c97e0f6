"""Dagster's databases and the catalog at first use: made by many processes at once, killed, found broken."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
from dagster_shared.serdes.errors import DeserializationError

from factory.errors import DamagedFile, MachineError
from factory.orchestration.host import databases
from factory.orchestration.host.instance import open_instance, reading_runs
from factory.settings import Settings

DATABASES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")

AT_ONCE = """
import importlib, multiprocessing, os, signal, sys, traceback
from pathlib import Path
from factory.lake import catalog
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings

PROCESSES = 4
home, module = Path(sys.argv[1]), importlib.import_module(sys.argv[2])
fork = multiprocessing.get_context("fork")


def killed():
    module.stamp_alembic_rev = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
    open_instance(Settings(home=home))


def first_use(together):
    together.wait()
    try:
        catalog.make_namespace(catalog.open_catalog(Settings(home=home)), "raw")
        with open_instance(Settings(home=home)) as instance:
            instance.add_dynamic_partitions("of", [str(os.getpid())])
            assert instance.get_runs_count() == 0
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


first = fork.Process(target=killed)
first.start()
first.join()
assert first.exitcode == -signal.SIGKILL
together = fork.Barrier(PROCESSES)
processes = [fork.Process(target=first_use, args=(together,)) for _ in range(PROCESSES)]
for process in processes:
    process.start()
for process in processes:
    process.join()
assert [process.exitcode for process in processes] == [0] * PROCESSES
with open_instance(Settings(home=home)) as instance:
    assert len(instance.get_dynamic_partitions("of")) == PROCESSES
"""


@pytest.fixture(autouse=True)
def _environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restore what opening an instance sets for the processes to come."""
    monkeypatch.setenv("DAGSTER_HOME", "")


def versions(home: Path) -> list[list[tuple[str]]]:
    read = "SELECT version_num FROM alembic_version"
    return [sqlite3.connect(home / "dagster" / path).execute(read).fetchall() for path in DATABASES]


@pytest.mark.invariant(
    "Processes that start a new lake at the same time find it whole, even if one of them is killed during"
    " setup."
)
@pytest.mark.process
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "storage",
    [
        pytest.param("runs.sqlite.sqlite_run_storage", marks=pytest.mark.slow),
        "event_log.sqlite.sqlite_event_log",
        pytest.param("schedules.sqlite.sqlite_schedule_storage", marks=pytest.mark.slow),
    ],
)
def test_processes_that_start_after_a_killed_one_find_the_lake_whole(tmp_path: Path, storage: str) -> None:
    command = [sys.executable, "-c", AT_ONCE, str(tmp_path), f"dagster._core.storage.{storage}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert [len(found) for found in versions(tmp_path)] == [1, 1, 1]
    assert not list(tmp_path.rglob(".making*"))


def two_heads(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO alembic_version VALUES ('5771160a95ad')")


def no_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE alembic_version")


def half_a_schema(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE alembic_version")
        connection.execute("DROP TABLE secondary_indexes")
        for (index,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        ).fetchall():
            connection.execute(f"DROP INDEX {index}")


def schema(home: Path) -> list[list[tuple[str]]]:
    read = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2"
    return [sqlite3.connect(home / "dagster" / path).execute(read).fetchall() for path in DATABASES]


@pytest.mark.invariant(
    "Processes that start a new lake at the same time find it whole, even if one of them is killed during"
    " setup."
)
@pytest.mark.parametrize("broken", [two_heads, no_version, half_a_schema])
def test_a_lake_with_half_made_databases_is_mended_with_its_history(
    tmp_path: Path, broken: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=tmp_path)
    with open_instance(settings) as instance:
        instance.add_run(dg.DagsterRun(job_name="pipeline"))
        instance.add_dynamic_partitions("of", ["a"])
    before, whole = versions(tmp_path), schema(tmp_path)
    for path in DATABASES:
        broken(tmp_path / "dagster" / path)
    with caplog.at_level(logging.WARNING), open_instance(settings) as instance:
        assert instance.get_runs_count() == 1
        assert instance.get_dynamic_partitions("of") == ["a"]
        instance.add_run(dg.DagsterRun(job_name="pipeline"))
    assert (versions(tmp_path), schema(tmp_path)) == (before, whole)
    told = [record.getMessage() for record in caplog.records if "Repaired" in record.getMessage()]
    assert [path for path in DATABASES if any(path in line for line in told)] == list(DATABASES)


def test_records_that_another_process_holds_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    open_instance(settings).dispose()
    monkeypatch.setattr(databases, "_LOCK_WAIT_S", 0)
    path = tmp_path / "dagster" / DATABASES[2]
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(MachineError, match=r"schedules\.db stays locked by another process"):
            open_instance(settings)
    open_instance(settings).dispose()
    assert not list(path.parent.glob("*.damaged"))


@pytest.mark.parametrize("error", [ValueError(), DeserializationError("no run")])
def test_damaged_records_of_runs_are_one_sentence(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(DamagedFile, match=r"runs\.db, cannot be read"), reading_runs(Settings(home=tmp_path)):
        raise error


def test_a_database_that_cannot_be_read_is_put_aside_and_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings(home=tmp_path)
    for path in DATABASES:
        file = tmp_path / "dagster" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"no database " * 1000)
    with caplog.at_level(logging.WARNING), open_instance(settings) as instance:
        assert instance.get_runs_count() == 0
    assert [len(found) for found in versions(tmp_path)] == [1, 1, 1]
    for path in DATABASES:
        assert (tmp_path / "dagster" / f"{path}.damaged").read_bytes().startswith(b"no database")
        assert f"{path} cannot be read" in caplog.text
