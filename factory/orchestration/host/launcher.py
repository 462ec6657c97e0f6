"""Dagster's run launcher with a health check.

The default launcher starts a process and loses track of it: a killed run would stay `STARTED` forever and
hold its place in the queue. The lake knows its live runs, so Dagster's monitor asks the lake.
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
        """True: the lake knows whether a run is alive."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return FAILED for a run that was killed in the lake, else RUNNING."""
        if killed(settings(), run):
            return CheckRunHealthResult(WorkerStatus.FAILED, "The process of this run was killed.")
        return CheckRunHealthResult(WorkerStatus.RUNNING)
