"""Workers share the slices of a queue, though some die or stall, clocks are wrong and stores lose answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.synthesis.job import Job
from factory.synthesis.leases import Watch
from factory.synthesis.queue import Lease, Queue, QueueListing
from tests.synthesis.simulation import Faults, World, content


def small_job(size: int) -> Job:
    return Job("loud", "raw.web", 1, "content", "upper", "1", size, slice_items=3)


def require_whole(queue: Queue, job: Job) -> None:
    """Every slice has the rows of its items, made by one worker."""
    for work in job.slices():
        body = queue.result_bytes(work)
        assert body is not None
        worker = body.decode().rpartition(" by ")[2]
        assert body == content(work, worker)


@given(st.integers(0, 1 << 32), st.integers(1, 20), st.integers(1, 5))
def test_each_slice_is_worked_on_once_where_nothing_fails(seed: int, size: int, workers: int) -> None:
    world = World(small_job(size), seed, Faults())
    queue = world.run(workers, term_s=10_000.0)
    require_whole(queue, world.job)
    assert sorted(world.attempts) == world.job.slices()


@given(st.integers(0, 1 << 32), st.integers(1, 20), st.integers(1, 4))
def test_every_slice_gets_one_result_whatever_fails(seed: int, size: int, workers: int) -> None:
    world = World(small_job(size), seed, Faults(create=0.2, kill=0.01, stall=0.02))
    require_whole(world.run(workers), world.job)


@given(st.integers(0, 1 << 32), st.integers(1, 12))
def test_no_slice_is_lost_or_made_again_with_lost_answers_alone(seed: int, size: int) -> None:
    world = World(small_job(size), seed, Faults(create=0.5))
    require_whole(world.run(3, term_s=10_000.0), world.job)
    assert sorted(world.attempts) == world.job.slices()


def test_a_larger_job_runs_the_new_slices_alone() -> None:
    world = World(small_job(9), 1, Faults())
    world.run(2)
    before = {name: body for name, body in world.objects.items() if name.startswith("results")}
    world.job = small_job(15)
    world.attempts.clear()
    require_whole(world.run(2), world.job)
    assert sorted(world.attempts) == small_job(15).slices()[3:]
    assert before.items() <= world.objects.items()


def test_a_dead_sign_of_life_is_one_that_does_not_change_on_the_watcher_s_clock() -> None:
    now = 0.0
    watch = Watch(10.0, lambda: now)
    for seconds, sign in ((0.0, "1999"), (9.0, "1999"), (9.5, "2031")):
        now = seconds
        watch.look(QueueListing(beats={"worker": sign}))
        assert not watch.is_dead("worker")
    now = 19.0
    assert not watch.is_dead("worker")
    now = 19.5
    assert watch.is_dead("worker")


def test_a_worker_that_two_listings_lack_is_dead_at_once() -> None:
    watch = Watch(10.0, lambda: 0.0)
    watch.look(QueueListing(beats={"worker": "1"}))
    watch.look(QueueListing())
    assert not watch.is_dead("worker")
    watch.look(QueueListing())
    assert watch.is_dead("worker")
    watch.look(QueueListing(beats={"worker": "2"}))
    assert not watch.is_dead("worker")


@pytest.mark.parametrize("attempts", [(1,), (1, 2, 5)])
def test_the_newest_lease_is_the_last_attempt(attempts: tuple[int, ...]) -> None:
    work = small_job(3).slices()[0]
    assert QueueListing({work: attempts}).newest(work) == Lease(work, attempts[-1])
    assert QueueListing().newest(work) is None
