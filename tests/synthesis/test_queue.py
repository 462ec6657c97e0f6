"""A queue in a folder: what is written, by whom first, and what cleaning leaves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from factory.errors import NotFound
from factory.settings import Settings
from factory.synthesis.collect import Incomplete, results_of
from factory.synthesis.job import Job
from factory.synthesis.queue import Lease, Queue, Status, queues


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "lake")


def job(size: int = 10, **fields: Any) -> Job:
    return Job("loud", "raw.web", 1, "content", "upper", "1", size, **{"slice_items": 4} | fields)


def files(queue: Queue) -> list[str]:
    folder = Path(queue.uri.removeprefix("file://"))
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_new_queue_is_two_objects_and_no_slice_is_written(settings: Settings) -> None:
    queue = Queue.create(settings, job())
    assert files(queue) == ["job.json", "request.json"]
    assert queue.status() == Status(slices=3, done=0, leased=0, deaths=0, items=10, items_done=0)
    assert Queue.open(settings, "loud", queue.job.id).job == queue.job


def test_a_slice_is_leased_by_one_worker_until_it_is_dropped(settings: Settings) -> None:
    queue = Queue.create(settings, job())
    lease = Lease(queue.job.slices()[1], 1)
    assert queue.lease(lease, "a", "host")
    assert not queue.lease(lease, "b", "host")
    assert (queue.holder(lease), queue.status().leased) == ("a", 1)
    queue.drop(lease)
    assert (queue.holder(lease), queue.status().leased) == (None, 0)
    assert queue.lease(lease, "b", "host")


def test_the_first_complete_attempt_is_the_result_for_good(settings: Settings) -> None:
    queue = Queue.create(settings, job())
    work = queue.job.slices()[0]
    queue.finish(Lease(work, 2), b"first")
    queue.finish(Lease(work, 1), b"of a worker that only seemed dead")
    assert queue.result_bytes(work) == b"first"
    assert queue.status().items_done == 4


def test_a_larger_job_has_the_results_of_the_smaller_one(settings: Settings) -> None:
    queue = Queue.create(settings, job(8))
    for work in queue.job.slices():
        queue.finish(Lease(work, 1), b"rows")
    larger = Queue.create(settings, job(13))
    assert larger.folder == queue.folder
    assert (larger.status().slices, larger.status().done) == (4, 2)
    assert queue.refresh().size == 13
    assert results_of(larger, 8).items == 8
    sentence = (
        "2 of the 4 slices of dataset `loud` have no result yet: items 8 to 11, 12 to 12. Run `factory work"
    )
    with pytest.raises(Incomplete, match=re.escape(sentence)):
        results_of(larger)


def test_deaths_are_counted_by_the_item_in_their_notes(settings: Settings) -> None:
    queue = Queue.create(settings, job())
    work = queue.job.slices()[0]
    for attempt, position in ((1, None), (2, 3), (3, 3), (4, 1), (5, None)):
        assert queue.lease(Lease(work, attempt), f"worker {attempt}", "host")
        if position is not None:
            queue.note(Lease(work, attempt), position)
    assert queue.deaths_before(Lease(work, 5), queue.listing()) == {3: 2, 1: 1}
    assert queue.deaths_before(Lease(work, 3), queue.listing()) == {3: 1}
    assert queue.status().deaths == 4


def test_a_lease_that_was_cut_short_belongs_to_nobody_who_moves(settings: Settings) -> None:
    queue = Queue.create(settings, job())
    lease = Lease(queue.job.slices()[0], 1)
    assert queue.lease(lease, "a", "host")
    (Path(queue.uri.removeprefix("file://")) / lease.name).write_bytes(b'{"wor')
    assert queue.holder(lease) == ""


def test_a_cleaned_queue_is_gone_with_all_its_objects(settings: Settings) -> None:
    queue, other = Queue.create(settings, job()), Queue.create(settings, job(seed=1))
    queue.lease(Lease(queue.job.slices()[0], 1), "a", "host")
    queue.beat("a", b"1")
    queue.clean()
    queue.clean()
    assert files(queue) == []
    assert [queue.job for queue in queues(settings)] == [other.job]
    for look in (queue.refresh, lambda: Queue.open(settings, "loud", queue.job.id)):
        with pytest.raises(NotFound, match=f"The warehouse has no queue synthesis/loud/{queue.job.id}: "):
            look()


def test_queues_are_listed_by_dataset_and_then_by_their_last_request(settings: Settings) -> None:
    first, second = Queue.create(settings, job()), Queue.create(settings, job(seed=1))
    Queue.create(settings, Job("aloud", "raw.web", 1, "c", "upper", "1", 3))
    first.announce()
    assert [queue.job.id for queue in queues(settings, "loud")] == [second.job.id, first.job.id]
    assert [queue.job.dataset for queue in queues(settings)] == ["aloud", "loud", "loud"]
    assert [*queues(settings, "lou")] == []
