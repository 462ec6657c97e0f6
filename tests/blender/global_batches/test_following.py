"""Readers of a log that grows, is trimmed, stays away or ends."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled, EndOfData, Stalled
from blender.global_batches import follower
from blender.global_batches.errors import (
    DamagedLog,
    NamespaceDiffers,
    NamespaceNotFound,
)
from blender.global_batches.log import log, names
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.store.objects import NoAnswer
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.counted import counted
from tests.blender.global_batches.reading import (
    ends,
    fast_reader,
    first_number,
    read,
    reading_threads,
)
from tests.blender.global_batches.written import Lane, batch, end, new_namespace, small_log
from tests.blender.programs import eventually


def test_ranks_see_the_same_steps_while_four_lanes_write(tmp_path: Path) -> None:
    mesh = Mesh(dp=2, cp=2)
    uri = new_namespace(tmp_path, mesh, lanes=4)

    def write(lane: int) -> None:
        writer = Lane(uri, f"lane-{lane}")
        for number in range(8):
            writer.put(batch(100 * lane + number))
        writer.close()

    def numbers(rank: int) -> list[tuple[int, int]]:
        steps = list(fast_reader(uri).read(StepRange(), rank))
        place = mesh.coordinate(rank)
        assert [step.offset for step in steps] == list(range(32))
        assert all((step.ids % 1_000 == np.arange(2 * place.dp, 2 * place.dp + 2)).all() for step in steps)
        return [int(step.ids[0]) // 1_000 for step in steps]

    with ThreadPoolExecutor(8) as pool:
        ranks = [pool.submit(numbers, rank) for rank in range(4)]
        for lane in [pool.submit(write, lane) for lane in range(4)]:
            lane.result()
        orders = [rank.result(60) for rank in ranks]
    assert orders[1:] == orders[:1] * 3
    assert sorted(orders[0]) == [100 * lane + number for lane in range(4) for number in range(8)]


def test_iterators_of_one_reader_share_its_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = new_namespace(tmp_path, lanes=1)
    lane = Lane(uri)
    lane.put(batch(0))
    reader = BatchReader(uri)
    shared, waits, polls = reader._follower, Counter[int](), iter(range(100))
    poll, wait_for = shared._poll, shared.wait_for
    may_poll = threading.Event(), threading.Event()

    def held_poll() -> None:
        assert may_poll[min(next(polls), 1)].wait(60)
        poll()

    def counted_wait(step: int) -> bool:
        waits[step] += 1
        return wait_for(step)

    shared.poll()
    monkeypatch.setattr(shared, "_poll", held_poll)
    monkeypatch.setattr(shared, "wait_for", counted_wait)
    iterators = [reader.read(StepRange(), 0) for _ in range(4)]
    assert [first_number(next(steps)) for steps in iterators] == [0] * 4
    all_wait = eventually(lambda: waits[1] == 4)
    lane.put(batch(1))
    may_poll[0].set()
    assert all_wait
    assert [first_number(next(steps)) for steps in iterators] == [1] * 4  # by that poll; the next one is held
    may_poll[1].set()


def test_a_reader_that_slept_while_the_log_was_trimmed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=8)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    lane.put(batch(0))
    reader = fast_reader(uri)
    steps = reader.read(StepRange(), 0)
    assert first_number(next(steps)) == 0
    reader._follower._turns._lock.acquire()  # the reader sleeps
    for number in range(1, 40):
        lane.put(batch(number))
    assert not (tmp_path / names.log(3)).exists()
    reader._follower._turns._lock.release()
    assert [first_number(step) for step in islice(steps, 39)] == list(range(1, 40))


def test_a_long_run_holds_a_bounded_part_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=8)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    reader = fast_reader(uri)
    old = reader.read(StepRange(), 0)
    for number in range(100):
        lane.put(batch(number))
        reader._follower.poll()
        assert len(reader._follower._state.tail) <= 2 * 8
    assert [first_number(step) for step in islice(old, 100)] == list(range(100))
    assert len(reader._follower._segments) <= 4


def test_a_log_without_checkpoints_is_not_reloaded_by_every_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, checkpoint_versions=1_000, segment_steps=2)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    reader = fast_reader(uri)
    reader._follower.poll()
    requests = counted(reader)
    for number in range(30):
        lane.put(batch(number))
        reader._follower.poll()
    assert requests.operations["checkpoint"] < 10
    assert read(reader, 0, 0, 30) == list(range(30))


def test_polls_become_rare_while_nothing_comes(tmp_path: Path) -> None:
    reader = BatchReader(new_namespace(tmp_path))
    requests = counted(reader)
    with (
        use_context(CallContext(timeout_s=1)),
        pytest.raises(Stalled, match=r"has 0 steps, and the next|The time"),
    ):
        next(reader.read(StepRange(), 0))
    assert 1 < requests.operations["log"] < 30  # seven, or fewer on a busy machine


def test_a_wait_that_was_too_long_names_the_lanes_that_may_still_commit(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, lanes=3)
    Lane(uri, "a").close()
    Lane(uri, "b")
    with use_context(CallContext(timeout_s=1)), pytest.raises(Stalled) as raised:
        next(BatchReader(uri).read(StepRange(), 0))
    assert "has 0 steps" in str(raised.value)
    assert "Lanes that may commit it: `b`, 1 that nobody has opened." in str(raised.value)


@pytest.mark.parametrize("is_opened_before", [False, True])
def test_a_log_that_lost_a_version_is_damaged_and_not_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_opened_before: bool
) -> None:
    monkeypatch.setattr(follower, "_IDLE_POLLS", 3)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    for number in range(5):
        lane.put(batch(number))
    (tmp_path / names.log(3)).rename(tmp_path / "aside")
    steps = (reader := BatchReader(uri, longest_pause_s=0.01)).read(StepRange(), 0)
    if is_opened_before:
        reader._follower._state = open_store(uri).run(log.load(reader._follower._client))
        reader._follower._is_loaded = True
    with pytest.raises(DamagedLog, match=f"{names.log(3)} is missing, and {names.log(6)} is there"):
        list(steps)


@pytest.mark.parametrize("is_replaced, error", [(False, NamespaceNotFound), (True, NamespaceDiffers)])
def test_a_waiting_reader_is_told_that_its_namespace_is_gone(
    tmp_path: Path, is_replaced: bool, error: type[Exception]
) -> None:
    uri = new_namespace(tmp_path / "run")
    Lane(uri).put(batch(0))
    reader = fast_reader(uri)
    steps = reader.read(StepRange(), 0)
    next(steps)
    shutil.rmtree(uri)
    if is_replaced:
        new_namespace(tmp_path / "run")
    with use_context(CallContext(timeout_s=20)), pytest.raises(error):
        read(reader, offset=1)


def polled_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> BatchReader:
    """A reader that knows of nine batches in short segments, and has read none."""
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=4)
    uri = new_namespace(folder)
    lane = Lane(uri)
    for number in range(9):
        lane.put(batch(number))
    reader = BatchReader(uri)
    reader._follower.poll()
    return reader


@pytest.mark.parametrize("request_of", ["a batch", "a segment"])
def test_a_deadline_is_kept_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_of: str
) -> None:
    reader = polled_reader(tmp_path, monkeypatch)
    answer = threading.Event()
    before = set(reading_threads())

    def silent(folder: Folder, name: str, *_: Any) -> Any:
        assert answer.wait(30)
        raise NoAnswer(name)

    monkeypatch.setattr(Folder, "read" if request_of == "a batch" else "get", silent)
    started = time.monotonic()
    with use_context(CallContext(timeout_s=0.3)), pytest.raises(Stalled, match="did not answer in time"):
        next(reader.read(StepRange(0, 2), 0))
    assert time.monotonic() - started < 5
    threads = [thread for thread in reading_threads() if thread not in before]
    assert threads  # at least that of the request
    answer.set()
    assert ends(threads)


def test_a_state_does_not_wait_for_a_segment_beyond_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = polled_reader(tmp_path, monkeypatch)
    asked, answer = threading.Event(), threading.Event()
    get = Folder.get

    def slow(folder: Folder, name: str) -> bytes | None:
        asked.set()
        assert answer.wait(30)
        return get(folder, name)

    monkeypatch.setattr(Folder, "get", slow)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(reader.state, 2)
        assert asked.wait(10)
        with use_context(CallContext(timeout_s=0.2)), pytest.raises(Stalled, match="did not answer in time"):
            reader.state(3)
        answer.set()
        assert other.result(10) == BatchReader(str(tmp_path)).state(2)


def test_a_cancelled_call_ends_the_wait(tmp_path: Path) -> None:
    reader = BatchReader(new_namespace(tmp_path))
    call = CallContext()
    threading.Timer(0.05, call.cancel, [CallCancelled("The trainer stops.")]).start()
    with use_context(call), pytest.raises(CallCancelled, match="The trainer stops"):
        next(reader.read(StepRange(), 0))


def test_a_poll_that_fails_leaves_the_others_to_poll(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path)
    reader = fast_reader(uri)
    with ThreadPoolExecutor(2) as pool:

        def first_of(call: CallContext) -> int:
            with use_context(call):
                return first_number(next(reader.read(StepRange(), 0)))

        calls = [CallContext(), CallContext()]
        one, other = (pool.submit(first_of, call) for call in calls)
        time.sleep(0.1)
        calls[0].cancel(CallCancelled("gone"))
        with pytest.raises(CallCancelled):
            one.result(10)
        Lane(uri).put(batch(5))
        assert other.result(10) == 5


@pytest.mark.parametrize("taken", [1, 30])
def test_closing_an_iterator_ends_its_threads(tmp_path: Path, taken: int) -> None:
    uri = new_namespace(tmp_path)
    Lane(uri).put(*(batch(number) for number in range(30)))
    before = set(reading_threads())
    steps = BatchReader(uri).read(StepRange(), 0)
    for _ in range(taken):
        next(steps)
    threads = [thread for thread in reading_threads() if thread not in before]
    assert threads
    steps.close()  # type: ignore[attr-defined]
    assert ends(threads)


def test_the_data_end_when_all_lanes_are_closed(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, lanes=2)
    first, second = Lane(uri, "a"), Lane(uri, "b")
    first.put(batch(0))
    first.close()
    reader = fast_reader(uri)
    with use_context(CallContext(timeout_s=0.3)), pytest.raises(Stalled):
        read(reader)
    second.put(batch(1))
    second.close()
    assert read(reader) == [0, 1]
    steps = reader.read(StepRange(0, 3), 0)
    assert [next(steps).offset, next(steps).offset] == [0, 1]
    with pytest.raises(EndOfData, match="has ended after 2 steps, and steps up to 3 were asked for"):
        next(steps)


def test_the_data_end_when_the_namespace_is_ended(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path)
    Lane(uri).put(batch(0))
    end(uri)
    reader = fast_reader(uri)
    assert read(reader) == [0]
    assert read(reader, 0, offset=1) == []
    with pytest.raises(EndOfData):
        read(reader, 0, offset=1, steps=1)


def test_a_waiting_reader_is_told_of_the_end(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(read, fast_reader(uri))
        time.sleep(0.05)
        end(uri)
        assert waiting.result(10) == []
