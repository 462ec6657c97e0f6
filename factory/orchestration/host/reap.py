"""Clean up after killed runs: their records, concurrency slots, audit branches and scratch.

A run tags itself when it enters and leaves the lake, and holds a lock in between (`factory.lake.presence`). A
run tagged as inside without a lock was killed. On an embedded lake, where all runs share one machine, a run
outside the lake was killed if its process is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
import psutil

from factory.errors import LakeLocked
from factory.lake.claims import claim
from factory.lake.lock import writing
from factory.lake.names import TableName
from factory.lake.presence import dead, present
from factory.lake.publish import AUDIT, branch_name, drop_branches
from factory.lake.servers import require_servers
from factory.lake.tables import Lake
from factory.orchestration.host.instance import reading_runs
from factory.orchestration.host.queue import give_up_place, is_queued, take_place
from factory.settings import Settings
from factory.spark.scratch import drop_dead_scratch
from factory.spark.session import require_master

LAKE_TAG = "factory/lake"  # on a run: `in` the lake, or `left`
_IN, _LEFT = "in", "left"

_ALIVE = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.CANCELING]
_RETURNS_AFTER_S = 1  # between two tries to enter a lake that another run holds
_KILLED = "The process of this run was killed."


class LakeSession:
    """The stay of a run in the lake, which it may leave and enter again.

    Inside, the run holds the lake's lock and claims the cores of this machine with its priority.
    """

    def __init__(
        self, lake: Lake, instance: dg.DagsterInstance | None, run_id: str, priority: int = 0
    ) -> None:
        self._lake, self._instance, self._run_id, self._priority = lake, instance, run_id, priority
        self._inside = ExitStack()

    def enter(self, waiting: Callable[[LakeLocked], object] | None = None) -> None:
        """Enter the lake, after cleaning up after killed runs; raises the errors of `lake_session`.

        With `waiting` the run waits while another one holds the lake, and tells the function once a second.
        """
        while True:
            try:
                return self._enter()
            except LakeLocked as error:
                if waiting is None:
                    raise
                waiting(error)
                time.sleep(_RETURNS_AFTER_S)

    def _enter(self) -> None:
        settings, token = self._lake.settings, branch_name(self._run_id)
        with ExitStack() as inside:
            inside.enter_context(writing(settings, f"run {self._run_id}", token))
            inside.enter_context(present(settings, token))
            drop_dead_scratch(settings)
            if self._instance is not None:
                _say(self._instance, self._run_id, _IN)
                # Before releasing the lock, or others would take the run for dead.
                inside.callback(_say, self._instance, self._run_id, _LEFT)
                reap(self._instance, self._lake, self._run_id)
            inside.enter_context(claim(self._priority, f"run {self._run_id}"))
            self._inside = inside.pop_all()

    def leave(self) -> None:
        """Leave the lake, so that other runs may write it; does nothing outside."""
        self._inside.close()

    @contextmanager
    def away(self, waiting: Callable[[LakeLocked], object] = lambda _error: None) -> Iterator[None]:
        """Leave the lake for a while, as a run does that waits for others; then enter it again.

        `waiting` is told who holds the lake when this run wants to return. If the block fails, the run
        stays outside.
        """
        self.leave()
        if self._instance is not None:
            give_up_place(self._instance, self._run_id)
        yield
        if self._instance is not None:
            take_place(self._instance, self._run_id)
        self.enter(waiting)


@contextmanager
def lake_session(
    lake: Lake, instance: dg.DagsterInstance | None, run_id: str, priority: int = 0
) -> Iterator[LakeSession]:
    """Enter the lake as run `run_id`, after cleaning up after killed runs.

    Raises LakeLocked if another run writes an embedded lake, MachineError or ConfigurationError if a server
    does not serve.
    """
    require_servers(lake.settings)
    require_master(lake.settings)
    session = LakeSession(lake, instance, run_id, priority)
    # The queue may start a run just when another one comes back to the lake.
    may_meet_another = instance is not None and is_queued(instance.get_run_by_id(run_id))
    session.enter((lambda _error: None) if may_meet_another else None)
    try:
        yield session
    finally:
        session.leave()


def reap(instance: dg.DagsterInstance, lake: Lake, run_id: str) -> list[str]:
    """Mark every killed run as failed, drop its audit branches and return the ids of the killed runs.

    The caller is in the lake as `run_id`.
    """
    settings = lake.settings
    branches = leftovers(lake, AUDIT)
    with reading_runs(settings):
        alive = instance.get_runs(filters=dg.RunsFilter(statuses=_ALIVE))
    runs = [
        run
        for run in alive
        if run.run_id != run_id
        and (run.tags.get(LAKE_TAG) == _IN or (settings.embedded and _process_gone(instance, run)))
    ]
    tokens = {branch_name(run.run_id) for run in runs}.union(*branches.values())
    gone = set(dead(settings, sorted(tokens)))
    killed = [run for run in runs if branch_name(run.run_id) in gone]
    for run in killed:
        instance.report_run_failed(run, f"{_KILLED} Run {run_id} found it.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    for name, found in branches.items():
        for branch in gone.intersection(found):
            drop_branches(lake, name, branch)
    return [run.run_id for run in killed]


def killed(settings: Settings, run: dg.DagsterRun) -> bool:
    """Whether `run` is tagged as inside the lake and no longer alive."""
    return run.tags.get(LAKE_TAG) == _IN and bool(dead(settings, [branch_name(run.run_id)]))


def _say(instance: dg.DagsterInstance, run_id: str, where: str) -> None:
    if instance.has_run(run_id):
        instance.add_run_tags(run_id, {LAKE_TAG: where})


def _process_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether every process that reported working on `run` is gone; False while none has reported.

    A run without a process is starting up; Dagster's monitor fails it after `start_timeout_seconds`.
    """
    said = [
        (int(str(pid.value)), record.event_log_entry.timestamp)
        for record in instance.get_records_for_run(
            run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT
        ).records
        if (event := record.event_log_entry.dagster_event) is not None
        and (pid := event.engine_event_data.metadata.get("pid")) is not None
    ]
    return bool(said) and not any(_lives(pid, since) for pid, since in said)


def _lives(pid: int, since: float) -> bool:
    """Whether the process that had `pid` at time `since` is alive."""
    try:
        return psutil.Process(pid).create_time() <= since
    except psutil.NoSuchProcess:
        return False


def leftovers(lake: Lake, prefix: str) -> dict[TableName, list[str]]:
    """Return the branches with names that start with `prefix`, by table; damaged tables are left out."""
    tables, _ = lake.readable()  # a damaged table loses its branches when it is recreated
    found = {
        name: sorted(ref for ref in table.metadata.refs if ref.startswith(prefix))
        for name, table in tables.items()
    }
    return {name: branches for name, branches in found.items() if branches}
