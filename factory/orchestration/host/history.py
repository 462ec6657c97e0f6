"""Dagster's records of a run: figures, chart and checks of each table that it published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from factory.lake.names import TableName
from factory.orchestration.host.run_ids import SEARCHED_RUNS, run_number
from factory.orchestration.keys import table_of

_EVENTS = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION}


LEFT_OUT = "left out"  # metadata of the observation of a table that a run left out
SQL = "SQL"  # metadata of a check: the aggregate that counts its violations


@dataclass(frozen=True)
class CheckRecord:
    """The result of a check; a failed one that is not `blocking` has only warned."""

    name: str
    passed: bool
    blocking: bool
    description: str
    figures: Mapping[str, Any]


@dataclass
class TableRecord:
    """A table as a run published it, or kept it; `chart` is a Markdown image."""

    figures: dict[str, Any] = field(default_factory=dict)
    chart: str | None = None
    checks: list[CheckRecord] = field(default_factory=list)


@dataclass(frozen=True)
class RunRecord:
    """A run by its full id; `started` is in seconds since 1970, None for a run that never started."""

    run_id: str
    status: str
    started: float | None
    seconds: float | None


def find_run(instance: dg.DagsterInstance, run: str) -> RunRecord:
    """Return the run with an id that begins with `run`; NotFound for none or several names the newest."""
    records = instance.get_run_records(limit=SEARCHED_RUNS)
    it = records[run_number([record.dagster_run.run_id for record in records], run)]
    seconds = it.end_time - it.start_time if it.start_time and it.end_time else None
    return RunRecord(it.dagster_run.run_id, it.dagster_run.status.value, it.start_time, seconds)


def tables_left_out(instance: dg.DagsterInstance, run_id: str) -> dict[TableName, str]:
    """Return the tables that a run left out, each with the reason."""
    reasons: dict[TableName, str] = {}
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_OBSERVATION):
        if entry.dagster_event is None:
            continue
        observation = entry.dagster_event.asset_observation_data.asset_observation
        if LEFT_OUT in observation.metadata:
            reasons[table_of(observation.asset_key)] = str(observation.metadata[LEFT_OUT].value)
    return reasons


def tables_of_run(instance: dg.DagsterInstance, run_id: str) -> dict[TableName, TableRecord]:
    """Return the tables that a run published or kept, in the order it finished them; {} for a deleted run."""
    found: dict[TableName, TableRecord] = {}
    for entry in instance.all_logs(run_id, of_type=_EVENTS):
        event = entry.dagster_event
        if event is None:
            continue
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            materialization = event.step_materialization_data.materialization
            of = found.setdefault(table_of(materialization.asset_key), TableRecord())
            values = {name: entry.value for name, entry in materialization.metadata.items()}
            chart = values.pop("chart", None)
            of.chart = str(chart) if chart else of.chart
            of.figures |= values
        else:
            check = event.asset_check_evaluation_data
            of = found.setdefault(table_of(check.asset_key), TableRecord())
            of.checks.append(
                CheckRecord(
                    check.check_name,
                    check.passed,
                    check.severity is dg.AssetCheckSeverity.ERROR,
                    check.description or "",
                    {name: entry.value for name, entry in check.metadata.items() if name != SQL},
                )
            )
    return {table: of for table, of in found.items() if of.figures}
