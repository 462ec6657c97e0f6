"""`factory batches`: each command as it is typed, and a sentence for each wrong input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from blender.catalog.blends import open_blends
from blender.catalog.namespaces import registered_namespaces
from blender.global_batches import BatchReader, BatchWriter, StepRange, TrainingRun
from blender.global_batches.stored_rows import packed_rows
from blender.records import Source
from blender.trainer.local import open_blend
from factory.errors import MachineError
from factory.settings import Settings
from tests.blender.global_batches.store.test_folder import UNSHARE, may_mount
from tests.blender.lakes import CODE, make_lake, serving
from tests.cli.command import factory_at, process
from tests.ports import free_ports

N_STEPS = 24


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, str]:
    """A lake, and a blend of 24 steps of 4 rows."""
    settings = make_lake(tmp_path_factory.mktemp("home"), code=4 * N_STEPS)
    return settings, open_blends(settings).create([Source(CODE, 4, shuffle="row")], seed=7).id


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "run")


def run(lake: tuple[Settings, str], *arguments: str, code: int = 0) -> str:
    """What a command prints, or the sentence of its error."""
    ended = factory_at(Path(lake[0].home), "batches", *arguments)
    assert ended.exit_code == code, ended.output
    assert "Traceback" not in ended.stderr
    return ended.stdout if code == 0 else ended.stderr.strip()


def test_a_namespace_is_created_filled_watched_and_read(lake: tuple[Settings, str], uri: str) -> None:
    settings, blend = lake
    created = run(lake, "create", uri, "--mesh", "dp=2,cp=2", "--lanes", "3")
    assert re.match(rf"Namespace [0-9a-f]{{32}} at {uri}: assigned order, 3 lanes, for dp=2,cp=2.\n", created)
    produced = process(
        Path(settings.home), "batches", "produce", uri, "--blend", blend, "--lane", "0,2", COLUMNS="200"
    )
    assert (produced.returncode, "Traceback" in produced.stderr) == (0, False), produced
    assert "16 batches, " in produced.stdout
    assert "Lanes: 0 at step 24 (finished), 2 at step 26 (finished)." in produced.stdout
    status = run(lake, "status", uri)
    assert status.startswith(
        "1 step is readable. Step 1 is that of lane `1`, which nobody has opened in the "
    )
    assert f"source     blend {blend}, chunking row" in status
    assert re.search(r"^1 +not opened +0 +0 +1 +8 +- +- *$", status, re.MULTILINE)
    run(lake, "produce", uri, "--blend", blend, "--lane", "1..1")
    assert run(lake, "status", uri).startswith(f"Ended: {N_STEPS} steps, and no more will come.")
    described = json.loads(run(lake, "status", uri, "--json"))
    assert (described["steps"], described["is_ended"], len(described["lanes"])) == (N_STEPS, True, 3)
    steps = BatchReader(uri).read(StepRange(), 0)
    expected = open_blend(blend, settings).fetch(rank=0, ranks=2)
    for step, batch in zip(steps, expected, strict=True):
        assert packed_rows(step).ordinal.tolist() == batch.ordinal.tolist()
    shown = run(lake, "show", uri, "5")
    assert f'origin     {{"blend": "{blend}", "offset": 5}}' in shown
    assert "lane       2, batch 1, epoch 1" in shown
    assert re.search(r"^tokens +<u2 +\[2, 2\] +cut for cp", shown, re.MULTILINE)
    assert len(json.loads(run(lake, "show", uri, "5", "--json"))["slices"]) == 8
    registered = registered_namespaces(settings)
    assert (uri, described["namespace"]["id"], blend) in [(one.uri, one.id, one.blend) for one in registered]


def test_a_step_is_traced_from_the_command_line(lake: tuple[Settings, str], uri: str) -> None:
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "1")
    run(lake, "produce", uri, "--blend", lake[1])
    ended = factory_at(Path(lake[0].home), "trace", "batch", uri, "5", "--json")
    traced = json.loads(ended.stdout)
    assert traced["batch"]["step"] == traced["step"]["offset"] == 5
    assert [row["ordinal"] for row in traced["step"]["rows"]] == [
        row.ordinal for row in open_blend(lake[1], lake[0]).explain(5)
    ]


def test_arrival_order_ends_with_its_lanes_or_by_a_word(lake: tuple[Settings, str], uri: str) -> None:
    created = run(lake, "create", uri, "--mesh", "dp=2", "--order", "arrival")
    assert f"Fill it by BatchWriter, and end it: factory batches end {uri}" in created
    assert "lanes come and go" in run(lake, "status", uri)
    assert "lets lanes come and go" in run(lake, "produce", uri, "--blend", lake[1], code=2)
    with BatchWriter(uri, "gone") as writer:
        writer.put([{"x": np.array([dp])} for dp in range(2)], 1)
    assert run(lake, "finish", uri, "gone") == f"Lane gone of {uri} is finished, after 1 batch.\n"
    assert "Nobody has opened lane `gome`" in run(lake, "finish", uri, "gome", code=2)
    assert run(lake, "end", uri) == f"The namespace at {uri} has ended.\n"
    assert run(lake, "status", uri).startswith("Ended: 1 step,")
    run(lake, "create", f"{uri}-2", "--mesh", "dp=2", "--order", "arrival", "--lanes", "2")
    run(lake, "produce", f"{uri}-2", "--blend", lake[1])
    assert run(lake, "status", f"{uri}-2").startswith(f"Ended: {N_STEPS} steps")


def test_runs_are_seen_reclaimed_for_and_closed(lake: tuple[Settings, str], uri: str) -> None:
    run(lake, "create", uri, "--mesh", "dp=2")
    run(lake, "produce", uri, "--blend", lake[1])
    assert "no run is open" in run(lake, "reclaim", uri)
    training = TrainingRun(uri, "a", settings=lake[0])
    training.checkpoint("ckpt-10", 10)
    training.checkpoint("ckpt-14", 14)
    status = run(lake, "status", uri)
    assert re.search(
        r"^kept .* KB from step 10 on, for run a; .* KB in 10 batches, 0 orphans to", status, re.M
    )
    assert re.search(r"^a +10 +ckpt-10 \(10\), ckpt-14 \(14\) +\S+$", status, re.MULTILINE)
    assert "10 batches (" in run(lake, "reclaim", uri, "--dry-run")
    assert "would be deleted; run a holds the steps from 10 on" in run(lake, "reclaim", uri, "--dry-run")
    assert "0 orphans deleted; run a holds" in run(lake, "reclaim", uri)
    assert "was reclaimed: no open run held" in run(lake, "show", uri, "9", code=8)
    assert run(lake, "show", uri, "10").startswith("step 10 of ")
    assert "Open runs hold batches of" in run(lake, "reclaim", uri, "--all", code=2)
    assert "has no open run `b`. Open runs: `a`." in run(lake, "close", uri, "--run", "b", code=8)
    assert run(lake, "close", uri, "--run", "a") == (
        f"Run a of {uri} is closed; it held the steps from 10 on.\n"
    )
    assert "14 batches (" in run(lake, "reclaim", uri, "--all")
    assert json.loads(run(lake, "status", uri, "--json"))["live_bytes"] == 0


@pytest.mark.skipif(not may_mount(), reason="this user may not mount")
def test_a_folder_that_refuses_deletions_is_one_sentence(lake: tuple[Settings, str], uri: str) -> None:
    run(lake, "create", uri, "--mesh", "dp=2")
    run(lake, "produce", uri, "--blend", lake[1])
    TrainingRun(uri, "a", settings=lake[0]).checkpoint("ckpt-10", 10)
    mount = 'mount --bind "$0/batches" "$0/batches"; mount -o remount,bind,ro "$0/batches"'
    script = f'{mount}; exec "$1" -m factory.cli.main batches reclaim "$0"'
    completion = subprocess.run(
        [*UNSHARE, script, uri, sys.executable],
        env=os.environ | {"FACTORY_HOME": str(lake[0].home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completion.returncode, completion.stdout) == (MachineError.exit_code, "")
    assert re.fullmatch(
        rf"The folder {uri} does not serve \(Read-only file system: .*\)\. Give this user .*\.\n",
        completion.stderr,
    )
    assert "10 batches (" in run(lake, "reclaim", uri)


def test_a_probe_leaves_nothing_behind(lake: tuple[Settings, str], tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    assert "exactly one won" in run(lake, "probe", str(tmp_path / "place"))
    assert set(json.loads(run(lake, "probe", str(tmp_path / "place"), "--json"))) == {"winner_s", "loser_s"}
    assert not any(path.is_file() for path in (tmp_path / "place").rglob("*"))


def test_wrong_input_is_a_sentence(lake: tuple[Settings, str], uri: str, tmp_path: Path) -> None:
    blend = lake[1]
    assert "There is no namespace at" in run(lake, "status", uri, code=8)
    assert "`lanes` is 10001" in run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "10001", code=2)
    assert "is not the extent of an axis" in run(lake, "create", uri, "--mesh", "dp", "--lanes", "1", code=2)
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "2")
    assert "holds a namespace with 2 lanes, and one with 3 lanes was" in run(
        lake, "create", uri, "--mesh", "dp=2", "--lanes", "3", code=2
    )
    assert "has assigned order and 2 lanes, and ends once these are" in run(lake, "end", uri, code=2)
    assert "Step 7 was asked for, and" in run(lake, "show", uri, "7", code=2)
    assert "Lane 2 was asked for" in run(lake, "produce", uri, "--blend", blend, "--lane", "0..2", code=2)
    assert "`0..` is not a range of lanes" in run(
        lake, "produce", uri, "--blend", blend, "--lane", "0..", code=2
    )
    assert "no blend" in run(lake, "produce", uri, "--blend", "0" * 32, code=8).lower()
    wide = f"{uri}-wide"
    run(lake, "create", wide, "--mesh", "dp=3", "--lanes", "2")
    assert "which the 3 dp indexes of the namespace cannot" in run(
        lake, "produce", wide, "--blend", blend, code=2
    )
    assert "names no transform" in run(lake, "produce", uri, "--blend", blend, "--transform", "own", code=2)
    other = open_blends(lake[0]).create([Source(CODE, 2)], seed=1).id
    run(lake, "produce", uri, "--blend", blend, "--lane", "0")
    assert f"is filled from blend {blend}" in run(
        lake, "produce", uri, "--blend", other, "--lane", "1", code=2
    )
    version = next((Path(uri) / "log").iterdir())
    version.write_bytes(version.read_bytes()[:-1])
    assert "is damaged" in run(lake, "status", uri, code=11)


def test_planned_and_transformed_steps_are_produced(
    lake: tuple[Settings, str], uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blend = lake[1]
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "1")
    run(
        lake,
        "produce",
        uri,
        "--blend",
        blend,
        "--strategy",
        "llm",
        "--microbatches",
        "2",
        "--model",
        "hidden=8,layers=1",
    )
    step = next(BatchReader(uri).read(StepRange(), 0))
    assert step.origin["offset"] == 0
    assert packed_rows(step).arrow.column("microbatch").to_pylist() == [0, 1]
    (tmp_path / "my_noise.py").write_text(
        "from blender.global_batches import Mesh, cut\n"
        "import numpy as np\n"
        "def noisy(step):\n"
        "    return cut({'noise': np.random.default_rng().random((len(step), 3))}, Mesh(dp=2))\n"
    )
    noisy = f"{uri}-noisy"
    run(lake, "create", noisy, "--mesh", "dp=2", "--lanes", "1")
    monkeypatch.syspath_prepend(tmp_path)
    run(lake, "produce", noisy, "--blend", blend, "--transform", "my_noise:noisy")
    assert next(BatchReader(noisy).read(StepRange(3), 1)).noise.shape == (2, 3)


def test_a_producer_reads_from_a_blender(lake: tuple[Settings, str], uri: str) -> None:
    settings, blend = lake
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "1")
    with serving(settings.home) as server:
        run(lake, "produce", uri, "--blend", blend, "--server", server.address)
        refused = run(
            lake, "produce", uri, "--blend", blend, "--strategy", "llm", "--server", server.address, code=2
        )
    assert "Give --strategy or --server" in refused
    run(lake, "create", f"{uri}-local", "--mesh", "dp=2", "--lanes", "3")
    run(lake, "produce", f"{uri}-local", "--blend", blend)
    served, local = (json.loads(run(lake, "status", one, "--json")) for one in (uri, f"{uri}-local"))
    assert served["steps"] == local["steps"] == N_STEPS
    assert served["content"] == local["content"]


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_an_interrupted_producer_commits_and_says_where_it_stopped(
    lake: tuple[Settings, str], uri: str, tmp_path: Path, number: signal.Signals
) -> None:
    settings, blend = lake
    (tmp_path / "slow_rows.py").write_text(
        "import time\n"
        "from blender.global_batches import Mesh, cut\n"
        "def slow(step):\n"
        "    time.sleep(0.2)\n"
        "    return cut({'ordinal': step.ordinal}, Mesh(dp=2))\n"
    )
    (port,) = free_ports(1)
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "2")
    words = ["batches", "produce", uri, "--blend", blend, "--transform", "slow_rows:slow"]
    producer = subprocess.Popen(
        [sys.executable, "-m", "factory.cli.main", *words, "--metrics-port", f"{port}"],
        env=os.environ | {"FACTORY_HOME": str(settings.home), "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while BatchReader(uri).steps < 4:
            assert time.monotonic() < deadline
            assert producer.poll() is None, producer.communicate()
            time.sleep(0.05)
        scraped = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        producer.send_signal(number)
        _, errors = producer.communicate(timeout=30)
    finally:
        producer.kill()
    assert 'batches_committed_total{lane="0"}' in scraped
    assert producer.returncode == 128 + number
    assert re.search(r"Lanes: 0 at step \d+ \(stopped\), 1 at step \d+ \(stopped\)\.", errors)
    assert "Traceback" not in errors
    steps = BatchReader(uri).steps
    assert 4 <= steps < N_STEPS
    status = json.loads(run(lake, "status", uri, "--json"))
    assert not status["is_ended"]


def test_the_status_is_watched_until_an_interrupt(lake: tuple[Settings, str], uri: str) -> None:
    run(lake, "create", uri, "--mesh", "dp=2", "--lanes", "2")
    watching = subprocess.Popen(
        [sys.executable, "-m", "factory.cli.main", "batches", "status", uri, "--watch"],
        env=os.environ | {"FORCE_COLOR": "1", "COLUMNS": "200"},  # a picture is drawn for terminals alone
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watching.stdout is not None
        for _ in range(2):  # a second look
            while "0 steps are readable. Step 0 is that of lane `0`" not in (
                line := watching.stdout.readline()
            ):
                assert line, watching.communicate()
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=30)
    finally:
        watching.kill()
    assert watching.returncode == 130
