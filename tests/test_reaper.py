"""What tests started ends with them: a pytest that runs real servers is interrupted and killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.reaper import alive

ROOT = Path(__file__).parents[1]
RUNS_FOREVER = "tests/servers_left_running.py"
WITHIN_S = 30.0

pytestmark = pytest.mark.process


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for the files of servers; each user can enter it, as Postgres must."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL])
def test_no_process_outlives_the_tests(tmp_path: Path, scratch: Path, number: signal.Signals) -> None:
    ready, log = tmp_path / "ready.json", tmp_path / "log"
    command = [sys.executable, "-m", "pytest", "-n1", f"--basetemp={tmp_path / 'tests'}", RUNS_FOREVER]
    with log.open("wb") as output:
        tests = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ
            | {"READY": str(ready), "TMPDIR": str(scratch)}
            | ({"WITH_ENGINES": "1"} if number == signal.SIGINT else {}),  # Postgres and a cluster are slow
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    while not ready.exists():
        assert tests.poll() is None, log.read_text()
        time.sleep(0.1)
    pids = json.loads(ready.read_text())
    servers = [psutil.Process(pid) for pid in pids["servers"]]
    assert alive(servers) == set(servers)
    started = [*servers, *psutil.Process(tests.pid).children(recursive=True)]
    for pid in pids["descendants"]:
        with contextlib.suppress(psutil.NoSuchProcess):  # a script that started a server may have ended
            started.append(psutil.Process(pid))
    if number == signal.SIGINT:
        os.killpg(tests.pid, number)  # as a terminal does
    else:
        tests.kill()
    tests.wait(WITHIN_S)
    deadline = time.monotonic() + WITHIN_S
    while alive(started) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(started), log.read_text()
