"""Processes of workers: deaths cost no results, and a more pressing run gets the cores at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from factory.errors import ConfigurationError
from factory.lake.claims import claim
from factory.settings import Settings
from factory.synthesis.queue import Queue, Status
from factory.synthesis.replicas import ReplicaPool, require_cores
from tests.synthesis.jobs import document, job, kind_file, rows, source

DEADLINE_S = 120.0


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder of one test's own: runs of other tests claim the cores, too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "lake")


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def queue_of(settings: Settings, size: int, **fields: Any) -> Queue:
    source(settings, [document(number) for number in range(size)])
    return Queue.create(settings, job(settings, size, **fields))


def pool(queue: Queue, folder: Path, least: int = 1) -> ReplicaPool:
    return ReplicaPool(queue.settings, queue, least, folder=kind_file(folder), term_s=4.0)


def workers() -> list[psutil.Process]:
    """The worker processes that this process has started."""
    return [child for child in psutil.Process().children() if "factory.synthesis" in child.cmdline()]


@contextmanager
def at_work(replicas: ReplicaPool) -> Iterator[threading.Thread]:
    """Run the processes in a thread, which is joined."""
    thread = threading.Thread(target=lambda: replicas.run(every_s=0.1))
    thread.start()
    try:
        yield thread
    finally:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
        assert workers() == []


def test_a_killed_worker_costs_its_slice_and_nothing_else(settings: Settings, tmp_path: Path) -> None:
    calm = queue_of(settings, 16)
    pool(calm, tmp_path).run(every_s=0.1)
    answer = rows(calm)
    queue = Queue.create(settings, job(settings, 16, dataset="rough", options={"wait_s": 0.1}))
    with at_work(pool(queue, tmp_path)):
        for n_done in (1, 2):
            wait_for(lambda least=n_done: queue.status().done >= least)  # type: ignore[misc]
            for worker in workers():
                worker.send_signal(signal.SIGKILL)
    assert rows(queue) == answer


def test_an_item_that_kills_three_workers_is_refused_and_its_neighbors_are_not(
    settings: Settings, tmp_path: Path
) -> None:
    queue = queue_of(settings, 6, options={"killer": "page 2"}, slice_items=6)
    pool(queue, tmp_path).run(every_s=0.1)
    outcomes = rows(queue)
    assert [(row["item_key"], row["reason"]) for row in outcomes if row["reason"]] == [
        ("page 2", "killed_worker")
    ]
    assert len({row["item_key"] for row in outcomes if row["text"]}) == 5


def test_an_item_without_an_end_is_refused_at_its_time_limit(settings: Settings, tmp_path: Path) -> None:
    queue = queue_of(settings, 3, options={"endless": "page 1"}, slice_items=3, item_seconds=1)
    pool(queue, tmp_path).run(every_s=0.1)
    refusals = [(row["item_key"], row["reason"], row["detail"]) for row in rows(queue) if row["reason"]]
    sentence = "3 workers died while they worked on it, or exceeded its 1 s."
    assert refusals == [("page 1", "killed_worker", sentence)]
    assert len({row["item_key"] for row in rows(queue) if row["text"]}) == 2


def test_workers_stand_still_within_an_item_while_a_more_pressing_run_claims_the_cores(
    settings: Settings, tmp_path: Path
) -> None:
    queue = queue_of(settings, 2, options={"wait_s": 1.0}, slice_items=2, priority=-10, item_seconds=4)
    with at_work(pool(queue, tmp_path)):
        wait_for(lambda: queue.status().leased == 1)
        with claim(0, "a run"):
            wait_for(lambda: [worker.status() for worker in workers()] == [psutil.STATUS_STOPPED])
            time.sleep(6)  # more than a term: the slice stays with its worker
            assert [worker.status() for worker in workers()] == [psutil.STATUS_STOPPED]
            assert queue.status().done == 0
    assert queue.status().deaths == 0
    assert len(rows(queue)) == 4


class EndOfRun(Exception):
    """Ends a run from within."""


def test_a_run_that_ends_while_its_workers_stand_still_makes_their_slices_free(
    settings: Settings, tmp_path: Path
) -> None:
    queue = queue_of(settings, 2, options={"wait_s": 1.0}, slice_items=2, priority=-10)
    with ExitStack() as claims:

        def end_once_still(status: Status) -> None:
            if [worker.status() for worker in workers()] == [psutil.STATUS_STOPPED]:
                raise EndOfRun
            if status.leased:
                claims.enter_context(claim(0, "a run"))

        with pytest.raises(EndOfRun):
            pool(queue, tmp_path).run(end_once_still, every_s=0.1)
    assert workers() == []
    assert queue.listing().beats == {}
    pool(queue, tmp_path).run(every_s=0.1)
    assert len(rows(queue)) == 4


@pytest.mark.parametrize("n_replicas", [0, -1])
def test_a_pool_has_a_process_at_least(settings: Settings, tmp_path: Path, n_replicas: int) -> None:
    with pytest.raises(ConfigurationError, match=f"There are {n_replicas} to {n_replicas} replicas to start"):
        pool(queue_of(settings, 1), tmp_path, n_replicas)


def test_more_processes_than_cores_are_refused() -> None:
    n_cores = len(os.sched_getaffinity(0))
    require_cores(n_cores)
    with pytest.raises(ConfigurationError, match=f"more than the {n_cores} cores of this machine"):
        require_cores(n_cores + 1)
