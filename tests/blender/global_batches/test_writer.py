"""Writers: batches in the order of the puts, each once, whoever holds the lane."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from blender.errors import InvalidRequest
from blender.global_batches.errors import (
    Fenced,
    InvalidBatch,
    LaneClosed,
    NamespaceDiffers,
    UnevenLanes,
    WriterClosed,
)
from blender.global_batches.format.cut import cut
from blender.global_batches.format.footer import Footer
from blender.global_batches.format.slices import Slices
from blender.global_batches.log import log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.operations import get
from blender.global_batches.log.state import LogState
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from factory.errors import ConfigurationError
from tests.blender.global_batches.written import small_log


@pytest.fixture
def uri(tmp_path: Path) -> str:
    address = f"{tmp_path}/run"
    create_namespace(address, Mesh(), order="arrival")
    return address


def state(uri: str) -> LogState:
    return open_store(uri).run(log.load(Client()))


def rows(uri: str) -> Iterator[int]:
    """The numbers in the batches of the log, in order."""
    store = open_store(uri)
    for batch in state(uri).tail:
        body = store.read(batch.name, 0, batch.n_bytes)
        assert body is not None
        footer = Footer.of_object(body, batch.name)
        offset, length = footer.range_of(0, 0)
        yield int(footer.decode(0, 0, body[offset : offset + length])["x"][0])


def put(writer: BatchWriter, row: int) -> None:
    writer.put([{"x": np.array([row])}], offset=row + 1, origin={"row": row})


def test_batches_are_committed_in_order_and_the_next_writer_goes_on(uri: str) -> None:
    with BatchWriter(uri, "a") as writer:
        assert (writer.offset, writer.sequence) == (None, 0)
        for row in range(20):
            put(writer, row)
        writer.flush()
        assert writer.committed == 20
    with BatchWriter(uri, "a") as writer:
        assert (writer.offset, writer.sequence) == (20, 20)
        put(writer, 20)
        writer.finish()
    assert list(rows(uri)) == list(range(21))
    assert state(uri).lane("a").closed


def test_commits_go_on_beside_production(uri: str) -> None:
    with BatchWriter(uri, "a", policy=Naive()) as writer:
        put(writer, 0)
        deadline = time.monotonic() + 30
        while not writer.committed and time.monotonic() < deadline:
            time.sleep(0.005)
        assert writer.committed == 1


def test_four_lanes_at_once_lose_nothing(uri: str) -> None:
    def produce(lane: str, first: int) -> None:
        with BatchWriter(uri, lane, policy=Naive()) as writer:
            for row in range(first, first + 50):
                put(writer, row)
            writer.finish()

    threads = [
        threading.Thread(target=produce, args=(name, 100 * place)) for place, name in enumerate("abcd")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = list(rows(uri))
    for place in range(4):
        lane = [row for row in written if row // 100 == place]
        assert lane == list(range(100 * place, 100 * place + 50))
    assert state(uri).version >= 4


def test_a_finished_lane_takes_nothing_and_finishes_again(uri: str) -> None:
    with BatchWriter(uri, "a") as writer:
        put(writer, 0)
        writer.finish()
        writer.finish()
        with pytest.raises(LaneClosed, match="Lane `a` is finished"):
            put(writer, 1)
    again = BatchWriter(uri, "a")
    assert (again.is_finished, again.offset, again.committed) == (True, 1, 1)
    again.finish()
    with pytest.raises(LaneClosed, match="Lane `a` is finished"):
        put(again, 1)


def test_a_closed_writer_says_so(uri: str) -> None:
    writer = BatchWriter(uri, "a")
    writer.close()
    writer.close()
    with pytest.raises(WriterClosed, match="writer of lane `a` is closed"):
        put(writer, 0)


def test_the_writer_before_is_fenced_and_named(uri: str) -> None:
    before = BatchWriter(uri, "a")
    put(before, 0)
    before.flush()
    after = BatchWriter(uri, "a")
    put(before, 1)
    with pytest.raises(Fenced, match=r"Process .*:\d+:\w+ has taken lane `a` over \(epoch 2, after 1 batch"):
        before.flush()
    with pytest.raises(Fenced):
        put(before, 2)
    with pytest.raises(Fenced):
        before.close()
    assert (before.sequence, before.committed) == (2, 1)
    put(after, 10)
    after.close()
    assert list(rows(uri)) == [0, 10]


def test_an_exception_of_the_producer_loses_no_batch_that_was_put(uri: str) -> None:
    def produce() -> None:
        with BatchWriter(uri, "a") as writer:
            put(writer, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        produce()
    assert list(rows(uri)) == [0]


@pytest.mark.invariant(
    "Equal batches have equal bytes from any writer, and equal histories have equal content."
)
def test_equal_batches_have_equal_content_in_any_lanes(tmp_path: Path) -> None:
    contents = set()
    for name, lanes in (("one", "a"), ("two", "ab")):
        address = f"{tmp_path}/{name}"
        create_namespace(address, Mesh(), order="arrival")
        writers = [BatchWriter(address, lane) for lane in lanes]
        for row in range(6):
            writer = writers[row % len(writers)]
            put(writer, row)
            writer.flush()
        for writer in writers:
            writer.close()
        contents.add(state(address).content)
    assert len(contents) == 1


def nested(levels: int) -> list[object]:
    """A list in a list in a list."""
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def test_an_offset_that_is_nested_deeply_is_committed(uri: str) -> None:
    with BatchWriter(uri, "a") as writer:
        writer.put([{"x": np.array([0])}], nested(500))
    assert BatchWriter(uri, "a").offset == nested(500)


def test_the_figures_count_attempts_and_the_lanes_that_commit(uri: str) -> None:
    with BatchWriter(uri, "a") as first, BatchWriter(uri, "b") as second:
        for row in range(3):
            put(first, row)
            first.flush()
            put(second, row)
            second.flush()
        assert first.figures.attempts >= 3
        assert first.figures.lost < first.figures.attempts
        assert (first.figures.lanes, second.figures.lanes) == (2, 2)


def test_the_version_that_is_due_for_a_checkpoint_may_be_a_takeover(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_log(monkeypatch, checkpoint_versions=10, segment_steps=8)
    for _ in range(10):
        BatchWriter(uri, "a").close()
    assert open_store(uri).run(get(names.checkpoint(10))) is not None


@pytest.mark.parametrize("lane", ["", "a/b", "../x", "a" * 65, "ä", ".hidden"])
def test_a_name_that_no_object_can_have_is_refused(uri: str, lane: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot name a lane"):
        BatchWriter(uri, lane)


def test_a_lane_too_many_is_refused(tmp_path: Path) -> None:
    create_namespace(f"{tmp_path}/two", Mesh(), lanes=1, order="arrival")
    BatchWriter(f"{tmp_path}/two", "a").close()
    with pytest.raises(
        NamespaceDiffers, match="Lane `b` would be one too many: the namespace is for 1 lane, and has `a`"
    ):
        BatchWriter(f"{tmp_path}/two", "b")


def test_what_cannot_be_stored_is_refused_and_the_lane_goes_on(tmp_path: Path) -> None:
    address = f"{tmp_path}/cp"
    create_namespace(address, Mesh(dp=2, cp=2), order="arrival")
    columns = {"x": np.zeros((4, 8), dtype=np.uint16)}
    with BatchWriter(address, "a") as writer:
        for slices, sentence in (
            ([columns], "1 slices were given for 2 dp indexes of 4 chunks"),
            (cut(columns, Mesh(dp=4)), "A batch of 4 dp indexes of 1 chunks was put, and .* 2 of 4"),
            (Slices(({"x": np.array([None])},) * 8, 2, 4, frozenset("x")), "object"),
        ):
            with pytest.raises(InvalidBatch, match=sentence):
                writer.put(slices, 0)
        good = cut(columns, Mesh(dp=2, cp=2), sequence=["x"])
        for offset, sentence in (
            ("x" * 5000, "The offset of a batch has 5,002 bytes of JSON. Give at most 4,096"),
            ({1: 2}, "The offset of a batch is not JSON"),
            (float("nan"), "The offset of a batch is not JSON"),
            ((1, 2), "The offset of a batch is not JSON"),
            (nested(950), "The offset of a batch is not JSON"),
        ):
            with pytest.raises(InvalidBatch, match=sentence):
                writer.put(good, offset)
        with pytest.raises(InvalidBatch, match="The origin of a batch"):
            writer.put(good, 0, origin=object())
        writer.put(good, {"row": 4})
    assert state(address).lane("a").offset == {"row": 4}
    assert state(address).steps == 1


def test_in_assigned_order_a_writer_knows_the_step_of_its_next_batch(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), lanes=3, order="assigned")
    with BatchWriter(tmp_path, 2) as writer:
        assert (writer.lane, writer.next_step) == ("2", 2)
        writer.put([{"ids": np.arange(4)}], offset=1)
        assert writer.next_step == 5
    with BatchWriter(tmp_path, "2") as writer:
        assert writer.next_step == 5
    for lane in (3, "a", "02"):
        with pytest.raises(NamespaceDiffers, match=f"Lane `{lane}` is not one of this namespace"):
            BatchWriter(tmp_path, lane)


def test_in_arrival_order_the_log_numbers_the_batches(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), order="arrival")
    with BatchWriter(tmp_path, 2) as writer, pytest.raises(InvalidRequest, match="gets its step when it is"):
        _ = writer.next_step


def test_a_lane_that_would_end_elsewhere_is_refused_and_stays_open(tmp_path: Path) -> None:
    create_namespace(tmp_path, Mesh(), lanes=2, order="assigned")
    with BatchWriter(tmp_path, 1) as writer:
        for number in range(2):
            writer.put([{"ids": np.arange(4)}], offset=number)
    writer = BatchWriter(tmp_path, 0)
    with pytest.raises(UnevenLanes, match=r"Step 3 of lane `1` would never be read"):
        writer.finish()
    with BatchWriter(tmp_path, 0) as another:
        for number in range(2):
            another.put([{"ids": np.arange(4)}], offset=number)
        another.finish()
    assert BatchReader(str(tmp_path)).steps == 4
