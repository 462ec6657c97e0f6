"""Dagster's storage makes one engine for each of its files."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from sqlalchemy import text
from sqlalchemy.pool import NullPool

from factory.orchestration.host.engines import MOST_ENGINES
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
