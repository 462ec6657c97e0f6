"""Dagster's run launcher, with an answer to whether a run still lives.

Dagster's own starts a process and then loses sight of it: a killed run would be shown as running for ever,
and hold its place in the queue. The lake knows who is in it, so Dagster's monitor asks the lake.
"""

from __future__ import annotations

import dagster as dg
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus  # not exported elsewhere

from factory.orchestration.host.reap import killed
from factory.settings import settings


class LakeRunLauncher(dg.DefaultRunLauncher):
    """The default launcher for Dagster's run monitoring; named in the lake's `dagster.yaml`."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Yes: for a run in the lake."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Failed when the run was killed in the lake, running as long as nothing says otherwise."""
        if killed(settings(), run):
            return CheckRunHealthResult(WorkerStatus.FAILED, "The process of this run was killed.")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
