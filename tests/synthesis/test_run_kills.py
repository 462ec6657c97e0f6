"""Runs of a job killed by SIGKILL at random instants, on a folder and on S3, and a last run that finishes.

`make test-crash POINTS=20 SEED=7` chooses the number of kills.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from factory.settings import Settings
from factory.synthesis.queue import queues
from tests.engines.processes import ObjectStore
from tests.killed_runs import command, contents, kill_run

KINDS = '''
import time
import pyarrow as pa
from factory.synthesis.kind import NewRecord, Refusal

class Slow:
    """A record or a refusal of each document, after a tenth of a second."""

    version = "1"
    schema = pa.schema([("seed", pa.string(), False)])

    def __init__(self, options): ...

    def __call__(self, item):
        time.sleep(0.1)
        if item.key.endswith("7"):
            yield Refusal("", "seven", item.key)
        else:
            yield NewRecord("again", f"{item.text} Once more: {item.key}.", {"seed": str(item.seed)})
'''
JOB = """\
datasets:
  - {name: notes, kind: prose, format: jsonl, paths: notes.jsonl, key: id}
  - name: again
    kind: prose
    format: synthesis
    from: notes
    worker: kinds.py:Slow
    size: 80
    slice: 8
    replicas: 2
    rules: [word_count]
    limits: {word_count: [1, 1000]}
"""
SELECTION = "*deduplicated.again"
_LONGEST_S = 15.0  # until a run is killed, counted from its first table


@pytest.fixture(params=["folder", "S3"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Settings]]:
    """The settings of a lake that is disturbed, and of one that is not."""
    homes = {name: tmp_path / name for name in ("killed", "alone")}
    if request.param == "folder":
        yield {name: Settings(home=home) for name, home in homes.items()}
        return
    (tmp_path / "store").mkdir()
    store = ObjectStore(tmp_path / "store")
    monkeypatch.setenv("FACTORY_S3_ENDPOINT", store.endpoint)
    monkeypatch.setenv("FACTORY_S3_ACCESS_KEY_ID", store.key_id)
    monkeypatch.setenv("FACTORY_S3_SECRET_ACCESS_KEY", store.secret)
    yield {name: Settings(home=home, warehouse=store.bucket(name)) for name, home in homes.items()}
    store.stop()


@pytest.mark.invariant(
    "Runs and workers of a job may be killed at any instant: the last run ends with the records of an "
    "undisturbed one."
)
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.process
@pytest.mark.timeout(3_600)
def test_runs_of_a_job_killed_at_random_instants_end_with_the_records_of_an_undisturbed_one(
    tmp_path: Path, warehouse: dict[str, Settings], kill_points: int, kill_seed: int
) -> None:
    (tmp_path / "kinds.py").write_text(KINDS)
    (tmp_path / "datasets.yaml").write_text(JOB)
    lines = [f'{{"id": "n{number}", "text": "Note {number} has a few words."}}\n' for number in range(100)]
    (tmp_path / "notes.jsonl").write_text("".join(lines))
    places = {name: settings.environment() for name, settings in warehouse.items()}
    draw = random.Random(kill_seed)
    for point in range(kill_points):
        seconds = round(draw.uniform(0, _LONGEST_S), 2)
        print(f"seed {kill_seed}, point {point}: {seconds} s after the first table")
        kill_run(tmp_path, seconds, SELECTION, places["killed"])
        kill_a_worker(draw)
    for lake, environment in places.items():
        run = command(tmp_path, lake, SELECTION, environment)
        assert run.wait() == 0, (tmp_path / f"{lake}.log").read_text()
    after_kills, alone = (
        {table: content for table, content in contents(settings).items() if table != "synthesis.again"}
        for settings in warehouse.values()
    )
    assert after_kills == alone
    assert {"raw.again", "raw.again_rejected", "deduplicated.again"} <= after_kills.keys()
    [queue] = queues(warehouse["killed"], "again")
    assert queue.status().items_done == 80
    psutil.wait_procs(workers(), timeout=60)
    assert workers() == []


def workers() -> list[psutil.Process]:
    """The worker processes of this job, also those whose run is dead."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[2:4] == ["factory.synthesis", "again"]
    ]


def kill_a_worker(draw: random.Random) -> None:
    """Kill one of the workers that a dead run has left, if there are any."""
    if orphans := workers():
        draw.choice(orphans).kill()
