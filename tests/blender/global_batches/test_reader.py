"""Ranks read their slices of every step, once, in order, and nothing else."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled, EndOfData, InvalidRequest, Stalled
from blender.global_batches import follower
from blender.global_batches.errors import (
    DamagedBatch,
    DamagedLog,
    NamespaceDiffers,
    NamespaceNotFound,
    OtherHistory,
)
from blender.global_batches.format.cut import ChunkLayout, chunks_of
from blender.global_batches.protocol import log, names
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.folder import Folder
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.store.objects import NoAnswer
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from tests.blender.global_batches.counted import counted
from tests.blender.global_batches.written import Lane, batch, end, new_namespace, small_log

ROOT = Path(__file__).parents[3]


def written(folder: Path, n_steps: int, mesh: Mesh | None = None, **options: Any) -> str:
    """A namespace of `n_steps` steps that has ended."""
    uri = new_namespace(folder, mesh, lanes=1, **options)
    lane = Lane(uri)
    lane.put(*(batch(number) for number in range(n_steps)), origin={"from": "a test"})
    lane.close()
    return uri


def fast_reader(uri: str, mesh: Mesh | None = None) -> BatchReader:
    return BatchReader(uri, mesh, longest_pause_s=0.02)


def read(reader: BatchReader, rank: int = 0, offset: int = 0, steps: int | None = None) -> list[int]:
    """The numbers of the batches that were read."""
    return [first_number(step) for step in reader.read(StepRange(offset, steps), rank)]


def first_number(step: GlobalBatchSlice) -> int:
    return int(step.arrays["tokens"].flat[0]) // 1_000_000


def reading_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith(("blender-prefetch", "batches-read"))]


def ends(threads: list[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(10)
    return not any(thread.is_alive() for thread in threads)


# What a rank gets.


def test_a_step_has_its_columns_by_name_its_number_and_its_origin(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 3))
    steps = list(reader.read(StepRange(), 0))
    assert [step.offset for step in steps] == [0, 1, 2]
    np.testing.assert_array_equal(steps[1].tokens, batch(1)["tokens"])
    np.testing.assert_array_equal(steps[1].arrays["ids"], batch(1)["ids"])
    assert steps[1].origin == {"from": "a test"}
    with pytest.raises(AttributeError, match=r"no column `labels`. Columns: `ids`, `tokens`"):
        _ = steps[1].labels


@pytest.mark.parametrize("mesh", [Mesh(dp=2), Mesh(cp=2)])
def test_columns_are_read_only_and_views_where_nothing_is_joined(tmp_path: Path, mesh: Mesh) -> None:
    step = next(BatchReader(written(tmp_path, 1, mesh)).read(StepRange(), 0))
    for array in step.arrays.values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        assert (array.base is None) == (mesh.cp > 1)  # no view may keep bytes that were copied


@given(
    dp=st.integers(1, 4),
    cp=st.integers(1, 4),
    layout=st.sampled_from(["zigzag", "contiguous"]),
    rows=st.integers(0, 2),
    columns=st.sets(st.sampled_from(["ids", "tokens"]), min_size=1),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_arrays_of_all_ranks_are_the_batch(
    tmp_path_factory: pytest.TempPathFactory,
    dp: int,
    cp: int,
    layout: ChunkLayout,
    rows: int,
    columns: set[str],
) -> None:
    mesh = Mesh(dp=dp, cp=cp)
    uri = new_namespace(tmp_path_factory.mktemp("batches"), mesh, layout=layout)
    whole = {name: array for name, array in batch(7, rows * dp, 24).items() if name in columns}
    Lane(uri).put(whole)
    reader = BatchReader(uri)
    ranks = [next(reader.read(StepRange(0, 1), rank)) for rank in range(mesh.ranks)]
    chunks = 1 if cp == 1 else 2 * cp
    parts: dict[tuple[int, int], np.ndarray] = {}
    for rank, step in enumerate(ranks):
        place = mesh.coordinate(rank)
        assert step.arrays.keys() == columns
        if "ids" in columns:
            np.testing.assert_array_equal(step.ids, whole["ids"][place.dp * rows : (place.dp + 1) * rows])
        if "tokens" in columns:
            mine = chunks_of(place.cp, cp, layout)
            for chunk, part in zip(mine, np.split(step.tokens, len(mine), axis=1), strict=True):
                assert (place.dp, chunk) not in parts
                parts[place.dp, chunk] = part
    if "tokens" in columns:
        joined = [np.concatenate([parts[d, c] for c in range(chunks)], axis=1) for d in range(dp)]
        np.testing.assert_array_equal(np.concatenate(joined), whole["tokens"])


# What a rank asks for.


def test_sixteen_ranks_ask_for_the_slices_of_four(tmp_path: Path) -> None:
    mesh = Mesh(tp=2, pp=2, dp=2, cp=2)
    reader = BatchReader(written(tmp_path, 1, mesh), mesh)
    requests = counted(reader)
    slices = []
    for rank in range(mesh.ranks):
        requests.ranges.clear()
        next(reader.read(StepRange(0, 1), rank))
        (footer, *ranges) = requests.ranges
        slices.append((footer, frozenset(ranges)))
    assert len(set(slices)) == 4
    assert len({footer for footer, _ in slices}) == 1


@pytest.mark.parametrize(
    "layout, requests_of_ranks", [("zigzag", [2, 2, 2, 1]), ("contiguous", [1, 1, 1, 1])]
)
def test_neighboring_chunks_are_one_request(
    tmp_path: Path, layout: ChunkLayout, requests_of_ranks: list[int]
) -> None:
    reader = BatchReader(written(tmp_path, 1, Mesh(dp=2, cp=4), layout=layout))
    requests = counted(reader)
    bytes_read = 0
    for rank, expected in enumerate(requests_of_ranks):
        requests.ranges.clear()
        (step,) = reader.read(StepRange(0, 1), rank)
        assert len(requests.ranges) == 1 + expected
        bytes_read += sum(length for _, _, length in requests.ranges[1:])
        assert step.nbytes == 2 * 16 // 4 * 8 + 2 * 4
    assert bytes_read == reader._follower.batch(0).footer_offset // 2


def test_a_rank_without_rows_asks_for_the_footer_alone(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, Mesh(dp=2))
    Lane(uri).put(batch(0, rows=0))
    reader = BatchReader(uri)
    requests = counted(reader)
    (step,) = reader.read(StepRange(0, 1), 1)
    assert step.tokens.shape == (0, 16)
    assert len(requests.ranges) == 1


def test_a_stride_reads_its_own_steps_alone(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 10))
    requests = counted(reader)
    assert [step.offset for step in reader.read(StepRange(1, 8, 3), 0)] == [1, 4, 7]
    assert len({name for name, _, _ in requests.ranges}) == 3


@pytest.mark.parametrize("versions, most_reads", [(10, 40), (1_000, 140)])
def test_opening_a_long_log_reads_its_newest_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, versions: int, most_reads: int
) -> None:
    monkeypatch.setattr("blender.global_batches.store.folder.os.fsync", lambda _: None)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    columns = {"ids": np.zeros(1, np.int8)}
    for _ in range(versions):
        lane.put(columns)
    reader = BatchReader(uri)
    requests = counted(reader)
    assert reader.steps == versions
    assert requests.operations.total() < most_reads
    requests.operations.clear()
    assert reader.steps == versions
    assert requests.operations == {"log": 1, "floor": 1}


# Following the log.


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


def test_iterators_of_one_reader_share_its_polls(tmp_path: Path) -> None:
    polls = []
    for iterators in (1, 4):
        uri = new_namespace(tmp_path / str(iterators), lanes=1)
        lane = Lane(uri)
        reader = BatchReader(uri, longest_pause_s=0.1)
        requests = counted(reader)
        with ThreadPoolExecutor(iterators) as pool:
            readers = [pool.submit(read, reader) for _ in range(iterators)]
            for number in range(10):
                lane.put(batch(number))
                time.sleep(0.1)
            lane.close()
            assert [one.result(60) for one in readers] == [list(range(10))] * iterators
        polls.append(requests.operations["floor"])
    assert polls[1] < 2 * polls[0]


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
    assert 3 < requests.operations["log"] < 30


def test_a_wait_that_was_too_long_names_the_lanes_that_may_still_commit(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path, lanes=3)
    Lane(uri, "a").close()
    Lane(uri, "b")
    with use_context(CallContext(timeout_s=1)), pytest.raises(Stalled) as raised:
        next(BatchReader(uri).read(StepRange(), 0))
    assert "has 0 steps" in str(raised.value)
    assert "Lanes that are not finished: `b`, 1 that nobody has opened." in str(raised.value)


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


@pytest.mark.parametrize("request_of", ["a batch", "a segment"])
def test_a_deadline_is_kept_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_of: str
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=4)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    for number in range(9):
        lane.put(batch(number))
    reader = BatchReader(uri)
    reader._follower.poll()
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
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=4)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    for number in range(9):
        lane.put(batch(number))
    reader = BatchReader(uri)
    reader._follower.poll()
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
        assert other.result(10) == BatchReader(uri).state(2)


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


def test_prefetching_stops_at_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blender.global_batches.reader.PREFETCH_BYTES", 200_000)  # 4 small steps
    reader = BatchReader(written(tmp_path, 60))
    requests = counted(reader)
    steps = reader.read(StepRange(), 0)
    next(steps)
    until = time.monotonic() + 30
    while len(requests.ranges) < 8 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    assert 4 <= len({name for name, _, _ in requests.ranges}) <= 16


# The end of data.


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


# States.


def test_a_state_taken_in_the_midst_of_a_log_is_loaded_when_it_is_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=8)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    states = []
    for number in range(40):
        states.append(BatchReader(uri).state(number))
        lane.put(batch(number))
    assert len({state["content"] for state in states}) == 40
    assert states[0] == {"namespace": BatchReader(uri).id, "step": 0, "content": 32 * "0"}
    reader = BatchReader(uri)
    for number in [*range(40), 39, 8, 7, 9, 0]:
        assert reader.state(number) == states[number]
        assert reader.offset_of(states[number]) == number


def test_three_restarts_from_one_state_replay_the_same_bytes(tmp_path: Path) -> None:
    uri = written(tmp_path, 12, Mesh(dp=2))
    state = BatchReader(uri).state(5)

    def replay() -> list[bytes]:
        reader = BatchReader(uri)
        steps = list(reader.read(StepRange(reader.offset_of(state)), 1))
        assert [step.offset for step in steps] == list(range(5, 12))
        return [array.tobytes() for step in steps for array in step.arrays.values()]

    assert replay() == replay() == replay()


def test_a_state_of_another_history_is_refused(tmp_path: Path) -> None:
    uri, other = written(tmp_path / "a", 4), written(tmp_path / "b", 4)
    reader = BatchReader(uri)
    state = reader.state(3)
    with pytest.raises(OtherHistory, match="belongs to namespace"):
        reader.offset_of(BatchReader(other).state(3))
    with pytest.raises(OtherHistory, match=r"at step 5, and .* has 4 steps"):
        reader.offset_of(state | {"step": 5})
    with pytest.raises(OtherHistory, match="after other batches than steps 0 to 2"):
        reader.offset_of(state | {"content": 32 * "a"})
    with pytest.raises(OtherHistory, match="after other batches"):
        reader.offset_of(state | {"step": 2})


@pytest.mark.parametrize(
    "state",
    [
        None,
        7,
        {},
        {"blend": "4f1c", "offset": 3},
        {"namespace": "x", "step": 3},
        {"namespace": 3, "step": 3, "content": 32 * "0"},
        {"namespace": "x", "step": -1, "content": 32 * "0"},
        {"namespace": "x", "step": True, "content": 32 * "0"},
        {"namespace": "x", "step": "3", "content": 32 * "0"},
        {"namespace": "x", "step": 3, "content": 32 * "z"},
        {"namespace": "x", "step": 3, "content": 31 * "0"},
        {"namespace": "x", "step": 3, "content": 7},
    ],
)
def test_what_is_not_a_state_is_refused_in_a_sentence(tmp_path: Path, state: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"not the state of a reader|`step` is"):
        BatchReader(new_namespace(tmp_path)).offset_of(state)


def test_a_state_ahead_of_the_log_is_not_given(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"state of step 5 was asked for, and .* has 4 steps"):
        BatchReader(written(tmp_path, 4)).state(5)


# Damage.


def test_a_flipped_byte_is_named_by_the_ranks_that_read_it_and_seen_by_no_other(tmp_path: Path) -> None:
    mesh = Mesh(dp=2, cp=2)
    uri = new_namespace(tmp_path, mesh)
    Lane(uri).put({"ids": np.arange(2, dtype=np.int8), "tokens": np.arange(16, dtype=np.int16).reshape(2, 8)})
    reader = BatchReader(uri)
    whole = [next(reader.read(StepRange(0, 1), rank)) for rank in range(4)]
    place = reader._follower.batch(0)
    path = tmp_path / place.name
    body = path.read_bytes()
    trailer = place.footer_offset + place.footer_length
    readers_of = np.zeros(len(body), int)
    for byte in range(trailer):
        path.write_bytes(body[:byte] + bytes([body[byte] ^ 0x10]) + body[byte + 1 :])
        for rank in range(4):
            step, fault = read_one(reader, rank)
            if fault:
                part = f"The footer of the batch {place.name}" if byte >= place.footer_offset else "Slice dp"
                assert part in fault
                assert place.name in fault
                readers_of[byte] += 1
            else:
                assert step is not None
                for name, array in step.arrays.items():
                    np.testing.assert_array_equal(array, whole[rank].arrays[name])
    assert (readers_of[: place.footer_offset] == 1).all()
    assert (readers_of[place.footer_offset : trailer] == 4).all()


def read_one(reader: BatchReader, rank: int) -> tuple[GlobalBatchSlice | None, str]:
    """Step 0, read in this thread, or the sentence that names the damage."""
    try:
        return reader._slice(0, reader.mesh.coordinate(rank), CallContext()), ""
    except DamagedBatch as error:
        return None, str(error)


@pytest.mark.parametrize("kept", [None, 0, 10, 200])
def test_a_missing_or_short_object_is_named(tmp_path: Path, kept: int | None) -> None:
    uri = written(tmp_path, 1)
    reader = BatchReader(uri)
    reader._follower.poll()
    path = tmp_path / reader._follower.batch(0).name
    body = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(body[:kept])
    with pytest.raises(DamagedBatch, match=path.name):
        read(reader)


def test_damage_is_raised_at_its_step_after_the_steps_before_it(tmp_path: Path) -> None:
    uri = written(tmp_path, 20)
    reader = BatchReader(uri)
    reader._follower.poll()
    (tmp_path / reader._follower.batch(7).name).unlink()
    steps = reader.read(StepRange(), 0)
    assert [first_number(step) for step in islice(steps, 7)] == list(range(7))
    with pytest.raises(DamagedBatch, match="of step 7 is missing"):
        next(steps)
    assert read(reader, 0, 8) == list(range(8, 20))


def test_a_damaged_record_of_the_log_is_named(tmp_path: Path) -> None:
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    reader = fast_reader(uri)
    lane.put(batch(0))
    steps = reader.read(StepRange(), 0)
    next(steps)
    lane.put(batch(1))
    steps.close()  # type: ignore[attr-defined]
    path = tmp_path / names.log(3)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DamagedLog, match=names.log(3)):
        list(BatchReader(uri).read(StepRange(), 0))


@pytest.mark.parametrize("damage", ["missing", "swapped"])
def test_a_damaged_segment_is_named_at_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    small_log(monkeypatch, checkpoint_versions=4, segment_steps=4)
    uri = new_namespace(tmp_path)
    lane = Lane(uri)
    for number in range(19):
        lane.put(batch(number))
    second, third = names.segment(4, 7), names.segment(8, 11)
    if damage == "missing":
        (tmp_path / second).unlink()
    else:
        (tmp_path / second).write_bytes((tmp_path / third).read_bytes())
    steps = BatchReader(uri).read(StepRange(), 0)
    assert [first_number(step) for step in islice(steps, 4)] == [0, 1, 2, 3]
    with pytest.raises(DamagedLog, match=second):
        next(steps)


# Opening.


def test_a_mesh_of_another_dp_is_refused_and_tp_is_free(tmp_path: Path) -> None:
    uri = written(tmp_path, 1, Mesh(dp=2))
    with pytest.raises(NamespaceDiffers):
        BatchReader(uri, Mesh(dp=4))
    reader = BatchReader(uri, Mesh(dp=2, tp=4))
    assert reader.mesh.ranks == 8
    with pytest.raises(InvalidRequest, match="Rank 8"):
        reader.read(StepRange(), 8)


@pytest.mark.parametrize("steps", [StepRange(-1), StepRange(0, -1), StepRange(0, 1, 0)])
def test_an_impossible_range_is_refused_at_once(tmp_path: Path, steps: StepRange) -> None:
    with pytest.raises(InvalidRequest):
        BatchReader(new_namespace(tmp_path)).read(steps, 0)


def test_an_empty_range_reads_nothing(tmp_path: Path) -> None:
    assert read(BatchReader(new_namespace(tmp_path)), 0, 3, 0) == []


def test_a_pickled_reader_refuses_another_namespace_at_its_address(tmp_path: Path) -> None:
    pickled = pickle.dumps(BatchReader(new_namespace(tmp_path / "run")))
    shutil.rmtree(tmp_path / "run")
    new_namespace(tmp_path / "run")
    with pytest.raises(NamespaceDiffers, match="created anew since this reader was pickled"):
        pickle.loads(pickled)


def test_a_pickled_reader_opens_the_namespace_again(tmp_path: Path) -> None:
    reader = BatchReader(written(tmp_path, 2, Mesh(dp=2)), Mesh(dp=2, pp=2), longest_pause_s=0.5)
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy.id, copy.mesh, copy._options) == (reader.id, reader.mesh, reader._options)
    assert read(copy, 1) == [0, 1]


def test_a_reader_needs_neither_torch_nor_the_lake(tmp_path: Path) -> None:
    program = """
import sys
for name in ("torch", "pyiceberg", "pandas", "grpc", "dagster", "pyspark"):
    sys.modules[name] = None
from blender.global_batches.reader import BatchReader
from blender.spec.step_range import StepRange
print([int(step.ids[0]) for step in BatchReader(sys.argv[1]).read(StepRange(), 0)])
"""
    command = [sys.executable, "-c", program, written(tmp_path, 3)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[0, 1000, 2000]\n"
