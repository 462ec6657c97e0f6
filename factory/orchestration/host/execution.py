"""Run assets in this process and record the run as the webserver records its own.

`JobDefinition.execute_in_process` records no origin, and Dagster's timeline omits runs without one. This run
carries the code location under which `factory ui` and the servers load the assets. The job needs
`in_process_executor`, which the definitions of every lake have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob  # not exported elsewhere
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.execution.api import execute_run_iterator
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

CODE_LOCATION = "factory"  # as workspace.yaml, docker/workspace.yaml and pyproject.toml name it


@dataclass(frozen=True)
class RunOutcome:
    """Dagster's record of a finished run."""

    run_id: str
    success: bool
    events: Sequence[dg.DagsterEvent]

    @property
    def check_evaluations(self) -> list[dg.AssetCheckEvaluation]:
        """Every check evaluation, in order."""
        return [
            event.asset_check_evaluation_data
            for event in self.events
            if event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION
        ]


def run_assets(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    keys: Sequence[dg.AssetKey],
    *,
    tags: Mapping[str, str],
    run_config: Mapping[str, Any],
) -> RunOutcome:
    """Materialize `keys`, assets of `job`; failures are part of the outcome."""
    from factory.orchestration.host.engines import kept_connections

    with kept_connections():
        run = instance.create_run_for_job(
            job_def=job,
            asset_selection=set(keys),
            tags={**job.run_tags, **tags},
            run_config=run_config,
            remote_job_origin=_origin(job.name),
        )
        events = list(execute_run_iterator(InMemoryJob(job), run, instance))
        ended = instance.get_run_by_id(run.run_id)
    return RunOutcome(run.run_id, ended is not None and ended.is_success, events)


def _origin(job_name: str) -> RemoteJobOrigin:
    location = RegisteredCodeLocationOrigin(CODE_LOCATION)
    return RemoteJobOrigin(RemoteRepositoryOrigin(location, SINGLETON_REPOSITORY_NAME), job_name)
