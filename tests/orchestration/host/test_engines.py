"""Dagster's storage makes one engine for each of its files, and in a run one connection."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from factory.orchestration.host.engines import MOST_ENGINES, kept_connections
from factory.orchestration.host.execution import run_assets
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings


def made_engines(folder: Path) -> dict[str, object]:
    """The engines of files below a folder, by address."""
    engines = sqlite_event_log.create_engine._engines  # type: ignore[attr-defined]
    return {url: engine for url, engine in engines.items() if str(folder) in url}


def test_all_events_of_a_run_are_stored_by_one_engine(tmp_path: Path) -> None:
    @dg.asset
    def something(context) -> None:  # type: ignore[no-untyped-def]
        for number in range(20):
            context.log.info(f"{number}")

    with open_instance(Settings(home=tmp_path)) as instance:
        run = dg.materialize([something], instance=instance).run_id
        before = made_engines(tmp_path)
        assert any(run in url for url in before)
        assert dg.materialize([something], instance=instance).success
        after = made_engines(tmp_path)
        assert before.items() < after.items()
        assert len(after) == len(before) + 1  # of the other run
        logged = [entry.user_message for entry in instance.all_logs(run)]
        assert [str(number) for number in range(20)] == [message for message in logged if message.isdigit()]


def test_an_engine_outlasts_its_file_and_the_newest_are_kept(tmp_path: Path) -> None:
    open_instance(Settings(home=tmp_path / "lake")).dispose()
    file = tmp_path / "a.db"
    for _ in range(2):
        engine = sqlite_event_log.create_engine(f"sqlite:///{file}", poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text("CREATE TABLE rows (n INT)"))
            connection.commit()
        file.unlink()
    for number in range(2 * MOST_ENGINES):
        sqlite_event_log.create_engine(f"sqlite:///{tmp_path}/{number}.db", poolclass=NullPool)
    assert len(made_engines(tmp_path)) == MOST_ENGINES


def test_a_run_opens_each_file_once_and_closes_it(tmp_path: Path) -> None:
    open_files: list[list[str]] = []

    def databases() -> list[str]:
        paths = (Path(file.path) for file in psutil.Process().open_files())
        return sorted(path.name for path in paths if path.is_relative_to(tmp_path) and path.suffix == ".db")

    @dg.asset
    def something(context) -> None:  # type: ignore[no-untyped-def]
        context.log.info("one more event")
        open_files.append([context.run.run_id, *databases()])

    with open_instance(Settings(home=tmp_path)) as instance:
        definitions = dg.Definitions([something], executor=dg.in_process_executor)
        job = definitions.resolve_implicit_global_asset_job_def()
        assert run_assets(job, instance, [something.key], tags={}, run_config={}).success
        ((run_id, *names),) = open_files
        assert names == sorted([f"{run_id}.db", "index.db", "runs.db"])
        assert databases() == []
        assert instance.get_run_by_id(run_id) is not None


def test_a_file_that_is_deleted_during_a_run_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "a.db"

    def rows() -> list[int]:
        engine = sqlite_event_log.create_engine(f"sqlite:///{file}", poolclass=NullPool)
        with engine.connect() as connection:
            connection.execute(text("PRAGMA journal_mode=WAL"))
            connection.execute(text("CREATE TABLE IF NOT EXISTS rows (n INTEGER PRIMARY KEY)"))
            connection.execute(text("INSERT INTO rows DEFAULT VALUES"))
            connection.commit()
            return [number for (number,) in connection.execute(text("SELECT n FROM rows"))]

    open_instance(Settings(home=tmp_path / "lake")).dispose()
    with kept_connections():
        assert (rows(), rows()) == ([1], [1, 2])
        file.unlink()
        assert rows() == [1]
    assert rows() == [1, 2]


IN_TWO_STEPS = """
import sys
from pathlib import Path
import dagster as dg
from factory.orchestration.host.execution import run_assets
from factory.orchestration.host.instance import open_instance
from factory.settings import Settings


@dg.asset
def first(context):
    print(context.run.run_id, flush=True)
    sys.stdin.readline()


@dg.asset(deps=[first])
def second(context):
    print("second", flush=True)
    sys.stdin.readline()


job = dg.Definitions([first, second], executor=dg.in_process_executor).resolve_implicit_global_asset_job_def()
instance = open_instance(Settings(home=Path(sys.argv[1])))
run_assets(job, instance, [first.key, second.key], tags={}, run_config={})
"""


@pytest.mark.process
def test_others_see_each_event_at_once_and_a_kill_loses_none(tmp_path: Path) -> None:
    materialized = threading.Event()

    def look(entry: dg.EventLogEntry, _cursor: str) -> None:
        if entry.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION:
            materialized.set()

    pipe = subprocess.PIPE
    command = [sys.executable, "-c", IN_TWO_STEPS, str(tmp_path)]
    with (
        open_instance(Settings(home=tmp_path)) as instance,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as run,
    ):
        try:
            assert run.stdin is not None
            assert run.stdout is not None
            run_id = run.stdout.readline().strip()
            known = [entry.dagster_event_type for entry in instance.all_logs(run_id)]
            assert dg.DagsterEventType.STEP_START in known
            instance.watch_event_logs(run_id, None, look)
            run.stdin.write("\n")
            run.stdin.flush()
            assert run.stdout.readline() == "second\n"
            assert materialized.wait(60)  # as the page learns of it, while the run goes on
            instance.end_watch_event_logs(run_id, look)
        finally:
            run.kill()
        run.wait()
        types = [entry.dagster_event_type for entry in instance.all_logs(run_id)]
    assert types.count(dg.DagsterEventType.ASSET_MATERIALIZATION) == 1
    assert types.count(dg.DagsterEventType.STEP_START) == 2


def test_two_runs_of_a_process_share_its_connections(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    url = f"sqlite:///{file}"
    with kept_connections():
        with kept_connections():
            engine = sqlite_event_log.create_engine(url, poolclass=NullPool)
            engine.connect().close()
        assert sqlite_event_log.create_engine(url, poolclass=NullPool) is engine
        assert engine.pool.checkedin() == 1  # type: ignore[attr-defined]
    assert engine.pool.checkedin() == 0  # type: ignore[attr-defined]
    assert sqlite_event_log.create_engine(url, poolclass=NullPool) is not engine
