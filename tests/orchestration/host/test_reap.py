"""What a run clears away when it enters an embedded lake: what killed runs left, nothing of living ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.events import EngineEventData  # not exported elsewhere

from factory.errors import LakeLocked
from factory.lake.claims import most_pressing
from factory.lake.lineage import Lineage
from factory.lake.names import TableName, registered
from factory.lake.publish import AUDIT
from factory.lake.registration import forget, register
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.queue import IN_LAKE, IN_TURN, IN_TURN_TAG, PLACE_TAG, WAITING
from factory.orchestration.host.reap import LAKE_TAG, lake_session, leftovers
from factory.settings import Settings

STARTED, STARTING, FAILURE = (
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.FAILURE,
)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(Settings(home=tmp_path))


@pytest.fixture
def instance(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", "")
    with open_instance(lake.settings) as opened:
        yield opened


def begun(
    instance: dg.DagsterInstance,
    *,
    status: dg.DagsterRunStatus = STARTED,
    pid: int | None = None,
    where: str | None = None,
) -> str:
    """A run that Dagster holds for running, in the process it says; its id."""
    run = dg.DagsterRun(job_name="pipeline", status=status, tags={} if where is None else {LAKE_TAG: where})
    instance.add_run(run)
    if pid is not None:
        instance.report_engine_event(
            f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid)
        )
    return run.run_id


def ended_process() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_run_that_is_loading_or_has_left_is_not_taken_for_killed(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    mine, living, gone = begun(instance), os.getpid(), ended_process()
    expected = {
        begun(instance, status=STARTING): STARTING,  # launched, its process not yet there
        begun(instance, pid=living): STARTED,  # loading the code
        begun(instance, pid=living, where="left"): STARTED,  # about to say that it succeeded
        begun(instance, pid=gone): FAILURE,
        begun(instance, pid=gone, where="left"): FAILURE,
        begun(instance, pid=living, where="in"): FAILURE,  # else it would hold the lock that is held here
    }
    with lake_session(lake, instance, mine):
        found = {run_id: instance.get_run_by_id(run_id).status for run_id in expected}  # type: ignore[union-attr]
    assert found == expected


def test_a_run_drops_the_scratch_of_dead_processes(lake: Lake, instance: dg.DagsterInstance) -> None:
    left = lake.settings.files.spark / "blockmgr-1"
    left.mkdir(parents=True)
    with lake_session(lake, instance, begun(instance)):
        assert not left.exists()


def test_another_process_of_the_same_number_is_not_the_runs(lake: Lake, instance: dg.DagsterInstance) -> None:
    mine, old = begun(instance), begun(instance)
    said = begun(instance, pid=os.getpid())
    [record] = instance.get_records_for_run(said, of_type=dg.DagsterEventType.ENGINE_EVENT).records
    before = record.event_log_entry._replace(run_id=old, timestamp=1.0)
    instance.event_log_storage.store_event(before)
    with lake_session(lake, instance, mine):
        statuses = [instance.get_run_by_id(run_id).status for run_id in (old, said)]  # type: ignore[union-attr]
    assert statuses == [FAILURE, STARTED]


def test_a_table_that_goes_while_branches_are_looked_for_has_none(lake: Lake) -> None:
    going = registered("going")

    class Meeting(Lake):
        """A lake whose table is dropped by somebody else just when its tables have been listed."""

        def names(self) -> list[TableName]:
            listed = super().names()
            forget(lake, going)
            return listed

    register(lake, going, [], pa.schema([("text", pa.string())]), Lineage("raw.going", "run", "code"))
    assert lake.exists(going)
    assert leftovers(Meeting(lake.settings), AUDIT) == {}
    assert not lake.exists(going)


def test_another_run_may_write_the_lake_while_one_is_away(lake: Lake, instance: dg.DagsterInstance) -> None:
    mine, others = begun(instance), begun(instance)
    with lake_session(lake, instance, mine) as session:
        with pytest.raises(LakeLocked), lake_session(lake, instance, others):
            pass
        with session.away(), lake_session(lake, instance, others):
            assert most_pressing(above=-1) is not None
            assert instance.get_run_by_id(mine).status == STARTED  # type: ignore[union-attr]
        with pytest.raises(LakeLocked), lake_session(lake, instance, others):
            pass


def test_a_run_that_returns_waits_for_the_one_that_holds_the_lake(
    lake: Lake, instance: dg.DagsterInstance
) -> None:
    mine, others = begun(instance), begun(instance)
    holding = ExitStack()
    sentences: list[str] = []

    def told(error: LakeLocked) -> None:
        sentences.append(str(error))
        holding.close()

    with lake_session(lake, instance, mine) as session, session.away(told):
        holding.enter_context(lake_session(lake, instance, others))
    assert [f"run {others}" in sentence for sentence in sentences] == [True]


def test_a_queued_run_gives_up_its_place_while_it_is_away(lake: Lake, instance: dg.DagsterInstance) -> None:
    mine = begun(instance)
    instance.add_run_tags(mine, {PLACE_TAG: IN_LAKE, IN_TURN_TAG: IN_TURN})

    def tags() -> tuple[str, str]:
        run = instance.get_run_by_id(mine)
        assert run is not None
        return run.tags[PLACE_TAG], run.tags[IN_TURN_TAG]

    with lake_session(lake, instance, mine) as session:
        with session.away():
            assert tags() == (WAITING, WAITING)
        assert tags() == (IN_LAKE, IN_TURN)
