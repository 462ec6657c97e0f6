"""`factory work`: it finishes a queue, stops in order, and says what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from factory.settings import Settings
from factory.synthesis.queue import Queue
from tests.cli.command import factory_at
from tests.synthesis.jobs import document, job, kind_file, rows, source

SIZE = 6
DEADLINE_S = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a datasets file, with kinds of its own."""
    (tmp_path / "datasets.yaml").write_text("datasets: []\n")
    return kind_file(tmp_path)


def queue_of(folder: Path, **fields: Any) -> Queue:
    settings = Settings(home=folder / "lake")
    source(settings, [document(number) for number in range(SIZE)])
    return Queue.create(settings, job(settings, SIZE, **fields))


def work(folder: Path, *words: str) -> Any:
    return factory_at(folder / "lake", "work", *words, "-f", str(folder / "datasets.yaml"))


@pytest.mark.process
def test_it_finishes_the_queue_of_a_dataset_with_kinds_beside_the_datasets_file(folder: Path) -> None:
    queue = queue_of(folder)
    answer = work(folder, "loud", "--replicas", "1")
    assert answer.exit_code == 0, answer.stderr
    name = f"job {queue.job.id[:8]} of dataset `loud` (kinds.py:Upper 1)"
    assert answer.stdout.splitlines() == [
        f"1 worker on {name}: 0 of 6 documents done.",
        f"Finished: {name} has 6 of 6 documents done.",
    ]
    assert len({row["item_key"] for row in rows(queue)}) == SIZE
    again = work(folder, "loud", "--replicas", "1")
    assert (again.exit_code, again.stdout.splitlines()) == (0, answer.stdout.splitlines()[1:])


@pytest.mark.process
def test_sigterm_lets_its_workers_finish_their_documents_and_give_their_slices_back(folder: Path) -> None:
    queue = queue_of(folder, options={"wait_s": 0.5}, slice_items=3)
    command = [sys.executable, "-m", "factory.cli.main", "work", "loud", "--replicas", "1"]
    environment = os.environ | {
        "FACTORY_HOME": str(folder / "lake"),
        "FACTORY_DATASETS": str(folder / "datasets.yaml"),
    }
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as popen:
        deadline = time.monotonic() + DEADLINE_S
        while not queue.listing().leases:
            assert popen.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        popen.send_signal(signal.SIGTERM)
        _, stderr = popen.communicate(timeout=DEADLINE_S)
    assert popen.returncode == 143
    assert stderr.decode().strip().endswith("documents done. The slices that were begun are free again.")
    listing = queue.listing()
    assert set(listing.leases) <= set(listing.results)
    assert not listing.beats


@pytest.mark.process
def test_the_error_of_a_worker_is_the_error_of_the_command(folder: Path) -> None:
    queue_of(folder, version="2")
    answer = work(folder, "loud", "--replicas", "1")
    assert (answer.exit_code, answer.stderr) == (
        2,
        "Kind `kinds.py:Upper` has version 1 here, and dataset `loud` is made by version 2. "
        "Use the same code on all machines, or materialize the dataset again.\n",
    )


def test_a_dataset_without_a_queue_is_refused_with_the_ones_that_have_one(folder: Path) -> None:
    queue_of(folder).clean()
    answer = work(folder, "loud")
    assert (answer.exit_code, answer.stdout) == (8, "")
    assert answer.stderr == (
        "The lake has no queue of a dataset `loud`. "
        "The run of a job makes its queue: `factory materialize`.\n"
    )
    queue_of(folder)
    assert "`laud`. Did you mean `loud`? The run" in work(folder, "laud").stderr


def test_more_workers_than_cores_are_refused(folder: Path) -> None:
    queue_of(folder)
    answer = work(folder, "loud", "--replicas", "10000")
    assert answer.exit_code == 2
    assert answer.stderr.startswith("10,000 replicas are more than the ")
