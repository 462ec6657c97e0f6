"""A worker in this process: what it makes of its items, whose slices it takes, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from factory.errors import NotFound
from factory.lake import names
from factory.lake.tables import Lake
from factory.settings import Settings
from factory.synthesis.job import InvalidJob
from factory.synthesis.outcomes import InvalidRecord
from factory.synthesis.queue import Lease, Queue, QueueListing
from factory.synthesis.worker import WorkDone, Worker, work
from tests.synthesis.jobs import document, job, kind_file, rows, source

ODD_KINDS = """
import pyarrow as pa
from factory.synthesis.kind import NewRecord

class Liar:
    version = "1"
    schema = pa.schema([("n_words", pa.int64())])

    def __init__(self, options): ...

    def __call__(self, item):
        yield NewRecord("lie", item.text, {"n_words": "many"})
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "lake")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "odd.py").write_text(ODD_KINDS)
    return kind_file(tmp_path)


def queue_of(settings: Settings, size: int, texts: dict[int, str] | None = None, **fields: Any) -> Queue:
    source(settings, [document(number, (texts or {}).get(number)) for number in range(size)])
    return Queue.create(settings, job(settings, size, **fields))


def finish(queue: Queue, folder: Path, **options: Any) -> WorkDone:
    return work(queue.settings, queue, folder, term_s=0.5, **options)


def test_every_item_has_its_outcomes_and_a_mistake_costs_its_own_item_alone(
    settings: Settings, folder: Path
) -> None:
    queue = queue_of(settings, 6, {1: "raise", 4: "refuse"})
    done = finish(queue, folder)
    assert (done.slices, done.items) == (2, 6)
    refusals = {row["item_key"]: (row["reason"], row["detail"]) for row in rows(queue) if row["reason"]}
    assert refusals == {
        "page 1": ("raised", "ValueError: no page 1"),
        "page 4": ("refused", "It says so."),
    }
    assert sum(row["text"] is not None for row in rows(queue)) == 2 * 4


def test_two_workers_at_a_time_or_one_make_the_same_rows(settings: Settings, folder: Path) -> None:
    queue = queue_of(settings, 9)
    finish(queue, folder)
    again = Queue.create(settings, job(settings, 9, dataset="again"))
    work_of_dead = again.job.slices()[1]
    assert again.lease(Lease(work_of_dead, 1), "a dead worker", "host")
    finish(again, folder)
    assert rows(again) == rows(queue)
    assert again.status().deaths == 1


def test_the_slice_of_a_worker_whose_sign_stands_still_is_taken_after_a_term(
    settings: Settings, folder: Path
) -> None:
    queue = queue_of(settings, 4)
    queue.beat("frozen", b"2031-01-01")
    assert queue.lease(Lease(queue.job.slices()[0], 1), "frozen", "host")
    done = finish(queue, folder)
    assert (done.items, queue.listing().leases[queue.job.slices()[0]]) == (4, [1, 2])


def test_a_worker_that_is_stopped_gives_its_slice_and_its_sign_of_life_back(
    settings: Settings, folder: Path
) -> None:
    queue = queue_of(settings, 4)
    workers: list[Worker] = []
    done = finish(queue, folder, at_start=workers.append, at_lease=lambda: workers[0].stop())
    listing = queue.listing()
    assert (done.items, listing.leases, listing.beats, listing.results) == (0, {}, {}, frozenset())
    assert finish(queue, folder).items == 4


class PauseOfLooks:
    """Another run wants the machine for a number of looks."""

    def __init__(self, n_looks: int) -> None:
        self.n_looks = n_looks

    def holder(self) -> str | None:
        self.n_looks -= 1
        return "a run" if self.n_looks >= 0 else None


def test_a_worker_that_gives_way_between_items_keeps_its_slice(settings: Settings, folder: Path) -> None:
    queue = queue_of(settings, 4)
    done = finish(queue, folder, pause=PauseOfLooks(5))
    assert done.items == 4
    assert done.paused_s > 0.5  # more than a term
    assert queue.listing().leases == {queue.job.slices()[0]: [1]}


def test_a_record_of_another_schema_ends_the_worker_with_its_column(settings: Settings, folder: Path) -> None:
    queue = queue_of(settings, 1, kind="odd.py:Liar")
    with pytest.raises(InvalidRecord, match="page 0 whose column `n_words` is str, and int64 by the schema"):
        finish(queue, folder)
    assert queue.listing().beats == {}


def test_a_source_that_changes_meanwhile_does_not_change_the_rows(settings: Settings, folder: Path) -> None:
    queue = queue_of(settings, 3)
    source(settings, [document(number, "something else") for number in range(3)])
    assert Lake(settings).published(names.raw("web")).snapshot_id != queue.job.snapshot
    finish(queue, folder)
    assert "TEXT OF DOCUMENT 0" in {row["text"] for row in rows(queue)}


def test_more_items_than_the_source_has_are_refused(settings: Settings, folder: Path) -> None:
    source(settings, [document(0)])
    queue = Queue.create(settings, job(settings, 2))
    with pytest.raises(InvalidJob, match=r"asks for 2 items, and raw.web has 1. Ask for at most as many"):
        finish(queue, folder)


def test_a_worker_of_a_queue_that_is_gone_ends_with_a_sentence(settings: Settings, folder: Path) -> None:
    queue = queue_of(settings, 60, options={"wait_s": 0.1}, slice_items=1)
    workers: list[Worker] = []

    def clean() -> None:
        if queue.exists():
            queue.clean()

    with pytest.raises(NotFound, match="has no queue synthesis/loud/"):
        finish(queue, folder, at_start=workers.append, at_lease=clean)
    assert workers[0].work.items < 60
    assert queue.listing() == QueueListing()


def test_only_the_new_slices_of_a_larger_job_are_worked_on(settings: Settings, folder: Path) -> None:
    source(settings, [document(number) for number in range(10)])
    queue = Queue.create(settings, job(settings, 8))
    assert finish(queue, folder).items == 8
    few = rows(queue)
    larger = Queue.create(settings, job(settings, 10))
    assert finish(larger, folder).items == 2
    assert rows(larger)[: len(few)] == few
