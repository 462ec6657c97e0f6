"""The ids of runs are read from the records of an embedded lake as Dagster reads them, or left to Dagster."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from factory.errors import LakeMoved, NotFound
from factory.lake.tables import Lake
from factory.orchestration.host.history import find_run
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.run_ids import require_run, run_ids
from factory.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A lake with three runs."""
    monkeypatch.setenv("DAGSTER_HOME", "")
    home = Settings(home=tmp_path)
    with open_instance(home) as instance:
        for _ in range(3):
            instance.add_run(dg.DagsterRun(job_name="pipeline"))
    return home


def test_the_ids_are_those_of_dagster_newest_first(settings: Settings) -> None:
    with open_instance(settings) as instance:
        newest = [record.dagster_run.run_id for record in instance.get_run_records()]
    assert len(newest) == 3
    assert run_ids(settings) == newest


@pytest.mark.parametrize("run", ["nonesuch", ""])  # no run begins with the first, all begin with the second
def test_an_unknown_run_has_the_sentence_that_dagsters_records_give(settings: Settings, run: str) -> None:
    with pytest.raises(NotFound) as by_file:
        require_run(settings, run)
    with open_instance(settings) as instance, pytest.raises(NotFound) as by_dagster:
        find_run(instance, run)
    assert str(by_file.value) == str(by_dagster.value)


def test_a_lake_without_runs_has_no_ids_and_gets_no_records(tmp_path: Path) -> None:
    assert run_ids(Settings(home=tmp_path)) == []
    assert not (tmp_path / "dagster").exists()


def test_records_that_are_kept_elsewhere_or_damaged_are_left_to_dagster(settings: Settings) -> None:
    uri = "postgresql://u:hush@127.0.0.1:1/d"
    assert run_ids(settings.model_copy(update={"dagster_uri": uri})) is None
    config = settings.files.dagster_config
    text = config.read_text()
    config.write_text(f"{text}# mine\n")
    assert run_ids(settings) is None
    config.write_text(text)
    settings.files.dagster_runs.write_bytes(b"not a database" * 100)
    assert run_ids(settings) is None
    require_run(settings, "nonesuch")


def test_a_moved_lake_is_refused_first(settings: Settings, tmp_path: Path) -> None:
    Lake(settings).names()  # which records the place
    copy = tmp_path.with_name(f"{tmp_path.name}_copy")
    tmp_path.rename(copy)
    with pytest.raises(LakeMoved):
        run_ids(Settings(home=copy))
