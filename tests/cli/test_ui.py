"""`factory ui` as a process: its output, and the end of all its child processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from factory.errors import MachineError
from tests.ports import free_ports

pytestmark = pytest.mark.process

READY = "Ctrl-C stops it and the runs it started."

STUBBORN = """
import subprocess, sys
from factory.cli.ui import _ending_all

deaf = "from signal import *; signal(SIGTERM, SIG_IGN); print(1, flush=True); sigwait([SIGUSR1])"
with _ending_all():
    child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    print(child.pid)
"""


@contextmanager
def ui(home: Path) -> Iterator[subprocess.Popen[str]]:
    """`factory ui` on a lake of one dataset, from the line that says it is ready."""
    (home / "notes.jsonl").write_text('{"id": "a", "text": "One note."}\n')
    (home / "datasets.yaml").write_text(
        "datasets:\n  - {name: notes, kind: prose, format: jsonl, key: id, paths: notes.jsonl}\n"
    )
    settings = {"FACTORY_HOME": str(home / "lake"), "FACTORY_DATASETS": str(home / "datasets.yaml")}
    (port,) = free_ports(1)
    with (home / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "factory.cli.main", "ui", "--port", str(port)],
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline(), process.stdout.readline()]
        assert lines == [
            f"Starting Dagster on the lake {home / 'lake'} ...\n",
            f"The UI is at http://127.0.0.1:{port}. {READY}\n",
        ], (home / "errors").read_text()
        yield process
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGINT])
def test_a_signal_ends_the_ui_and_its_services(number: signal.Signals, tmp_path: Path) -> None:
    with ui(tmp_path) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        assert len(family) >= 4  # the code server has a process of its own for the definitions
        process.send_signal(number)
        assert process.wait(60) == 0
    assert not [it for it in family if it.is_running() and it.status() != psutil.STATUS_ZOMBIE]
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.slow
def test_a_service_that_dies_ends_the_ui_with_a_sentence(tmp_path: Path) -> None:
    with ui(tmp_path) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        (daemon,) = [it for it in family if "dagster._daemon" in it.cmdline()]
        daemon.kill()
        assert process.wait(60) == MachineError.exit_code
    assert not [it for it in family if it.is_running() and it.status() != psutil.STATUS_ZOMBIE]
    assert "Dagster's daemon ended with exit code -9." in (tmp_path / "errors").read_text()


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    ended = subprocess.run([sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert not psutil.pid_exists(int(ended.stdout))
