"""A real Dagster webserver and daemon: new input noticed, a backfill from the UI, priorities kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.execution import CODE_LOCATION, run_assets
from factory.orchestration.host.instance import prepare_home
from factory.settings import Settings
from jobs.sensors import Seen
from tests.ports import free_ports

OPEN = """
import sys
from rich.console import Console
from factory.cli.ui import open_ui
from factory.settings import settings

open_ui(settings(), int(sys.argv[1]), Console(), module="tests.jobs.watched_pipeline")
"""
WHERE = {"repositoryLocationName": CODE_LOCATION, "repositoryName": "__repository__"}
RAW = TableName("raw", "letters")
TIMELINE = (
    "query ($f: RunsFilter!) { runsOrError(filter: $f) { ... on Runs { results "
    "{ repositoryOrigin { repositoryLocationName repositoryName } } } } }"
)
WAIT_S = 900
REPOSITORIES = "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"


@dg.asset
def step() -> None:
    """Nothing, as the code location has it."""


STEP = dg.Definitions(assets=[step], executor=dg.in_process_executor)


class Ui:
    """The webserver as a browser uses it: GraphQL over HTTP; records are read from its instance."""

    def __init__(self, settings: Settings, port: int) -> None:
        self.lake, self.port = Lake(settings), port
        self.instance = dg.DagsterInstance.from_config(str(settings.files.dagster))

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                said = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        assert "errors" not in said, said["errors"]
        (found,) = said["data"].values()
        assert "message" not in found, found["message"]
        return dict(found)

    def runs(self, **tags: str) -> list[dg.DagsterRun]:
        """The runs with these tags, the first asked for first."""
        return list(self.instance.get_runs(dg.RunsFilter(tags=tags), ascending=True))

    def compared(self) -> int:
        """The number of inputs that the sensor remembers to have requested, or to have found unchanged."""
        (state,) = self.instance.all_instigator_state()
        cursor = json.loads(state.instigator_data.cursor or "{}")
        return sum(bool(Seen(*memory).asked) for memory in cursor.get("letters", {}).values())

    def requests(self) -> int:
        """The number of runs that the sensor requested, also of those that Dagster knows already."""
        (state,) = self.instance.all_instigator_state()
        ticks = self.instance.get_ticks(state.instigator_origin_id, state.selector_id)
        return sum(len(tick.tick_data.run_requests or ()) for tick in ticks)

    def documents(self) -> dict[str, list[str]]:
        """The texts of the raw table by partition."""
        found: dict[str, list[str]] = {}
        for row in self.lake.read(RAW, ["text", "partition"]).to_pylist():
            found.setdefault(row["partition"], []).append(row["text"])
        return {key: sorted(found[key]) for key in sorted(found)}


def until(what: str, holds: Callable[[], object]) -> None:
    """Wait until `holds` gives something true."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {WAIT_S} s for {what}"
        time.sleep(0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three folders."""
    for name, text in (("at", "Servus"), ("ch", "Salut"), ("de", "Liebe Anna")):
        (tmp_path / "letters" / name).mkdir(parents=True)
        (tmp_path / "letters" / name / "a.txt").write_text(text)
    return tmp_path / "letters"


@pytest.fixture
def ui(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ui]:
    settings = Settings(home=tmp_path / "lake")
    monkeypatch.setenv("DAGSTER_HOME", "")
    prepare_home(settings)
    (port,) = free_ports(1)
    log = tmp_path / "dagster.log"
    environment = os.environ | {
        "FACTORY_HOME": str(settings.home),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
        "WATCHED_FOLDER": str(folder),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", OPEN, str(port)], env=environment, stdout=output, stderr=output
        )
    try:
        opened = Ui(settings, port)

        def answers() -> bool:
            assert process.poll() is None, f"ended with {process.returncode}: {log.read_text()}"
            try:
                return bool(opened.ask(REPOSITORIES))
            except (OSError, AssertionError):
                return False

        until("the webserver", answers)
        yield opened
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(1_800)
def test_a_daemon_notices_input_runs_a_backfill_and_keeps_priorities(ui: Ui, folder: Path) -> None:
    # A run of the command line has a line in the timeline, which leaves out what has no origin.
    told = run_assets(
        STEP.resolve_implicit_global_asset_job_def(),
        ui.instance,
        [dg.AssetKey("step")],
        tags={},
        run_config={},
    )
    assert told.success
    shown = ui.ask(TIMELINE, f={"runIds": [told.run_id]})["results"]
    assert [item_shown["repositoryOrigin"] for item_shown in shown] == [WHERE]

    # New input: folders are partitions, and one run of all is followed by one of what is made from them.
    ui.ask(
        "mutation ($s: SensorSelector!) { startSensor(sensorSelector: $s) "
        "{ ... on Sensor { name } ... on PythonError { message } } }",
        s={**WHERE, "sensorName": "new_input"},
    )
    asked = {"dagster/sensor_name": "new_input"}
    until("the runs of the sensor", lambda: [run.is_success for run in ui.runs(**asked)] == [True, True])
    first = {"at": ["Servus"], "ch": ["Salut"]}
    assert ui.documents() == {**first, "de": ["Liebe Anna"]}
    assert ui.lake.published(TableName("dedup", "sizes")).rows == 3

    # A sensor without memory compares the files with those that the tables were made from.
    ui.ask(
        "mutation ($s: SensorSelector!) { setSensorCursor(sensorSelector: $s) "
        "{ ... on Sensor { name } ... on PythonError { message } } }",
        s={**WHERE, "sensorName": "new_input"},
    )
    until("two looks at three folders", lambda: ui.compared() == 3)
    assert ui.requests() == 2

    # A backfill of two partitions, one of them new, from the UI: one run, each partition with its rows.
    state = ui.ask(
        "query ($s: SensorSelector!) { sensorOrError(sensorSelector: $s) "
        "{ ... on Sensor { sensorState { id } } ... on PythonError { message } } }",
        s={**WHERE, "sensorName": "new_input"},
    )
    ui.ask(
        "mutation ($id: String) { stopSensor(id: $id) "
        "{ ... on StopSensorMutationResult { instigationState { id } } ... on PythonError { message } } }",
        id=state["sensorState"]["id"],
    )
    (folder / "de" / "a.txt").write_text("Lieber Anton")
    (folder / "en").mkdir()
    (folder / "en" / "b.txt").write_text("Dear Bob")
    (folder.parent / "hold").touch()  # until others have come to wait behind the run
    ui.instance.add_dynamic_partitions("folders", ["en"])
    launched = ui.ask(
        "mutation ($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) "
        "{ ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }",
        p={
            "assetSelection": [{"path": [str(table)]} for table in (RAW, RAW.suffixed("rejected"))],
            "partitionNames": ["de", "en"],
        },
    )
    tag = {"dagster/backfill": launched["backfillId"]}
    until(
        "the run of the backfill",
        lambda: [run.status for run in ui.runs(**tag)] == [dg.DagsterRunStatus.STARTED],
    )

    # Runs that wait in the queue behind it start by priority, not by age.
    for priority in ("-1", "0", "5"):
        ui.ask(
            "mutation ($p: ExecutionParams!) { launchRun(executionParams: $p) "
            "{ ... on LaunchRunSuccess { run { id } } ... on PythonError { message } } }",
            p={
                "selector": {**WHERE, "jobName": "wait_in_line"},
                "runConfigData": {},
                "executionMetadata": {"tags": [{"key": "dagster/priority", "value": priority}]},
            },
        )

    (folder.parent / "hold").unlink()

    def status() -> str:
        found = ui.ask(
            "query ($id: String!) { partitionBackfillOrError(backfillId: $id) "
            "{ ... on PartitionBackfill { status } ... on PythonError { message } } }",
            id=launched["backfillId"],
        )
        return str(found["status"])

    until("the backfill", lambda: status() == "COMPLETED_SUCCESS")
    assert ui.documents() == {**first, "de": ["Lieber Anton"], "en": ["Dear Bob"]}
    assert len(ui.runs(**tag)) == 1

    def waiting() -> list[dg.RunRecord]:
        return ui.instance.get_run_records(dg.RunsFilter(job_name="wait_in_line"))

    until("the queue", lambda: all(waiting_run.dagster_run.is_success for waiting_run in waiting()))
    in_order = sorted(waiting(), key=lambda of: of.start_time or 0)
    assert [waiting_run.dagster_run.tags["dagster/priority"] for waiting_run in in_order] == ["5", "0", "-1"]
