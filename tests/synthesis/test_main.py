"""The process of a worker without a run: its signals, exit codes and sentences, and a parent that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from factory.settings import Settings
from factory.synthesis.queue import Queue
from tests.synthesis.jobs import document, job, kind_file, rows, source

DEADLINE_S = 120.0
POOL = """
import sys
from pathlib import Path
from factory.settings import settings
from factory.synthesis.queue import Queue
from factory.synthesis.replicas import ReplicaPool

queue = Queue.open(settings(), *sys.argv[1:3])
ReplicaPool(settings(), queue, folder=Path(sys.argv[3]), term_s=4.0).run()
"""
pytestmark = pytest.mark.process


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "lake")


def queue_of(settings: Settings, size: int, **fields: Any) -> Queue:
    source(settings, [document(number) for number in range(size)])
    return Queue.create(settings, job(settings, size, **fields))


def start(queue: Queue, command: list[str]) -> subprocess.Popen[bytes]:
    environment = os.environ | queue.settings.environment()
    return subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.PIPE)


def worker_command(queue: Queue, folder: Path) -> list[str]:
    words = ["-m", "factory.synthesis", queue.job.dataset, queue.job.id, "--folder"]
    return [*words, str(kind_file(folder)), "--term", "4"]


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_lets_a_worker_finish_its_item_and_give_its_slice_back(
    settings: Settings, tmp_path: Path, number: signal.Signals
) -> None:
    queue = queue_of(settings, 4, options={"wait_s": 1.0})
    with start(queue, worker_command(queue, tmp_path)) as worker:
        wait_for(lambda: bool(queue.listing().leases))
        worker.send_signal(number)
        assert worker.wait(DEADLINE_S) == 0
    listing = queue.listing()
    assert (listing.leases, listing.beats, listing.results) == ({}, {}, frozenset())


def test_a_worker_of_a_queue_that_is_gone_ends_with_its_sentence(settings: Settings, tmp_path: Path) -> None:
    queue = queue_of(settings, 4)
    queue.clean()
    with start(queue, worker_command(queue, tmp_path)) as worker:
        _, stderr = worker.communicate(timeout=DEADLINE_S)
    assert worker.returncode == 8
    assert f"The warehouse has no queue synthesis/loud/{queue.job.id}: " in stderr.decode()


@pytest.mark.parametrize("stop", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_workers_end_with_the_process_that_started_them(
    settings: Settings, tmp_path: Path, stop: bool
) -> None:
    """Killed, it can end nobody; what it has stopped for a more pressing run ends, too."""
    queue = queue_of(settings, 4, options={"wait_s": 0.5})
    folder = str(kind_file(tmp_path))
    with start(queue, ["-c", POOL, queue.job.dataset, queue.job.id, folder]) as pool:
        wait_for(lambda: bool(queue.listing().leases))
        [worker] = psutil.Process(pool.pid).children()
        if stop:
            os.killpg(worker.pid, signal.SIGSTOP)
            wait_for(lambda: worker.status() == psutil.STATUS_STOPPED)
        pool.kill()
        pool.wait(DEADLINE_S)
    worker.wait(DEADLINE_S)
    again = start(queue, worker_command(queue, tmp_path))
    with again:
        assert again.wait(DEADLINE_S) == 0
    assert len({row["item_key"] for row in rows(queue)}) == 4


def test_a_kind_may_print_without_end(settings: Settings, tmp_path: Path) -> None:
    queue = queue_of(settings, 2, options={"print_mib": 64})
    folder = str(kind_file(tmp_path))
    with start(queue, ["-c", POOL, queue.job.dataset, queue.job.id, folder]) as pool:
        _, stderr = pool.communicate(timeout=DEADLINE_S)
    assert (pool.returncode, stderr) == (0, b"")
    assert len({row["item_key"] for row in rows(queue)}) == 2
