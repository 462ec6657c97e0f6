"""Clear away what a killed run left: its record, its slots and its audit branches.

Only the holder of the lake's lock may reap, because the lock is what says that no other run is alive.
"""

from __future__ import annotations

import dagster as dg

from factory.lake.names import TableName
from factory.lake.publish import AUDIT, drop_branches
from factory.lake.tables import Lake

_ALIVE = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.CANCELING]


def reap(instance: dg.DagsterInstance, lake: Lake, run_id: str) -> list[str]:
    """Mark every other run that still claims to be running as failed and drop its audit branches.

    Gives the ids of the reaped runs.
    """
    dead = [run for run in instance.get_runs(filters=dg.RunsFilter(statuses=_ALIVE)) if run.run_id != run_id]
    for run in dead:
        instance.report_run_failed(run, "The process of this run was killed; the next run reaped it.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
    for name in lake.names():
        drop_branches(lake, name, AUDIT)
    return [run.run_id for run in dead]


def leftovers(lake: Lake, prefix: str) -> dict[TableName, list[str]]:
    """The branches whose name starts with `prefix`, by table."""
    found = {
        name: sorted(branch for branch in lake.table(name).metadata.refs if branch.startswith(prefix))
        for name in lake.names()
    }
    return {name: branches for name, branches in found.items() if branches}
