"""`factory materialize` interrupted from the keyboard: a sentence, exit code 130, and a lake as it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from factory.lake.names import TableName
from factory.lake.publish import AUDIT
from factory.lake.tables import Lake
from factory.orchestration.host.reap import LAKE_TAG, leftovers
from factory.settings import Settings

RAW = TableName("raw", "letters")
WITHIN_S = 600  # the machine may be busy; alone it takes less than one


HELD = """
import time
from factory.cli.main import main
from factory.orchestration.table import progress


def hold(event):
    if event.phase == "sealed":  # the next step publishes
        time.sleep(3600)


with progress.listening(hold):
    main()
"""


def process(home: Path, datasets: Path, *, held: bool = False) -> subprocess.Popen[str]:
    """A run that writes the letters; one that is `held` writes them and never publishes them."""
    program = ["-c", HELD] if held else ["-m", "factory.cli.main"]
    environment = os.environ | {
        "FACTORY_HOME": str(home),
        "FACTORY_DATASETS": str(datasets),
        "FACTORY_SPARK_MASTER": "local[2]",
        "FACTORY_SPARK_DRIVER_MEMORY": "1g",
    }
    return subprocess.Popen(
        [sys.executable, *program, "materialize", "raw.letters"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt_when(run: subprocess.Popen[str], holds: Callable[[], object]) -> tuple[str, str]:
    """Interrupt `run` as a keyboard does once `holds` gives something true; what it said."""
    deadline = time.monotonic() + 600
    while not holds():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)  # opening the instance of Dagster, as one of them does, keeps a core busy
    family = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=WITHIN_S)
    _, alive = psutil.wait_procs(family, timeout=WITHIN_S)
    assert alive == []  # neither the JVM nor its workers
    return said


IN_A_CALL = """
import os, signal, threading, traceback
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from rich.progress import Progress
from factory.cli.runs import _interruptible

gateway = SparkContext._gateway = launch_gateway()
found_out = threading.Event()


def calls():
    gateway.jvm.java.lang.System.nanoTime()
    gateway.proc.send_signal(signal.SIGSTOP)  # it dies before it reads the next, which resets the connection
    threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        gateway.jvm.java.lang.System.nanoTime()
    except Exception:
        traceback.print_exc()  # as pyspark's own threads do
        found_out.set()


try:
    _interruptible(calls, Progress())
except KeyboardInterrupt:
    assert found_out.wait(60)  # an interrupted join() holds the thread ended
    os._exit(130)
"""


@pytest.mark.process
def test_a_call_that_loses_its_jvm_to_an_interrupt_says_nothing() -> None:
    run = subprocess.run([sys.executable, "-c", IN_A_CALL], capture_output=True, text=True, timeout=WITHIN_S)
    assert run.returncode == 130, run.stderr
    assert "Traceback" not in run.stderr  # beside it stand the JVM's own warnings as it started


ON_A_TERMINAL = """
import os, signal, threading, traceback
from rich.console import Console
from factory.cli.runs import RunReport, _drawn, _interruptible

interrupted, said = threading.Event(), threading.Event()


def fails():
    os.kill(os.getpid(), signal.SIGINT)
    interrupted.wait()
    try:
        raise OSError("gone")
    except OSError:
        traceback.print_exc()
    said.set()


try:
    with _drawn(Console(force_terminal=True), 1, RunReport()) as bar:
        _interruptible(fails, bar)
except KeyboardInterrupt:
    interrupted.set()
    assert said.wait(60)
    os._exit(130)
"""


@pytest.mark.process
def test_a_thread_that_fails_after_an_interrupt_is_silent_below_a_bar() -> None:
    command = [sys.executable, "-c", ON_A_TERMINAL]
    run = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S)
    assert (run.returncode, run.stderr) == (130, "")
    assert "Traceback" not in run.stdout


@pytest.mark.process
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("moments", [("writes",), pytest.param(("enters", "writes"), marks=pytest.mark.slow)])
def test_an_interrupted_run_says_one_sentence_and_the_next_cleans_up(
    tmp_path: Path, moments: tuple[str, ...]
) -> None:
    (tmp_path / "letters").mkdir()
    for number in range(200):
        (tmp_path / "letters" / f"{number}.txt").write_text(f"letter {number} " * 50)
    datasets = tmp_path / "datasets.yaml"
    datasets.write_text("datasets: [{name: letters, kind: prose, format: files, paths: letters}]\n")
    home = tmp_path / "lake"
    lake = Lake(Settings(home=home))

    def enters() -> bool:
        """Whether it has said that it is in the lake; it signs before that, and also to try the lock."""
        with suppress(FileNotFoundError):
            signed = (home / "writing.json").read_text()
            return '"what": "run ' in signed and [of.tags.get(LAKE_TAG) for of in runs()] == ["in"]
        return False

    def runs() -> list[dg.DagsterRun]:
        return list(dg.DagsterInstance.from_config(str(home / "dagster")).get_runs())

    def writes() -> bool:
        return lake.exists(RAW) and bool(leftovers(lake, AUDIT))

    for moment in moments:
        holds = {"enters": enters, "writes": writes}[moment]
        run = process(home, datasets, held=True)
        out, err = interrupt_when(run, holds)
        assert run.returncode == 130, err
        assert err.splitlines() == [
            "Interrupted: published tables are unchanged, and the next run cleans up."
        ]
        assert "Traceback" not in out
    assert lake.table(RAW).current_snapshot() is None

    finished = process(home, datasets)
    out, err = finished.communicate(timeout=1_200)
    assert finished.returncode == 0, err
    assert lake.published(RAW).rows == 200
    assert leftovers(lake, AUDIT) == {}
    assert sorted(run.status.value for run in runs()) == [*["FAILURE"] * len(moments), "SUCCESS"]
