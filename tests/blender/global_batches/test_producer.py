"""Producers of a blend's steps: lanes, sources and meshes that do not fit, and who goes on after whom."""

from __future__ import annotations

import logging
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender.batch import Batch
from blender.errors import InvalidRequest, Stalled
from blender.global_batches import BatchReader, StepRange, cut
from blender.global_batches import producer as producer_module
from blender.global_batches.blend_production import BlendProduction
from blender.global_batches.errors import Fenced, NamespaceDiffers
from blender.global_batches.format.slices import Slices
from blender.global_batches.json_values import Json
from blender.global_batches.namespace import Namespace, create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import ProducedBatch, Producer, Production
from blender.global_batches.producer_metrics import FAMILIES, samples
from blender.global_batches.stored_rows import packed_rows
from blender.global_batches.writer import BatchWriter
from blender.records import Source
from blender.serving.metrics import serve_metrics
from blender.spec.mesh import Mesh
from blender.trainer.local import LocalBlender, open_blend
from blender.trainer.reader import BlendHandle
from factory.errors import FactoryError
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, make_lake

LANES = 3
N_STEPS = 25


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A lake with two tables of packed rows."""
    return make_lake(tmp_path_factory.mktemp("lake"), code=6 * N_STEPS, prose=200)


@pytest.fixture(scope="module")
def blend(lake: Settings) -> BlendHandle:
    """A blend of 25 steps of 6 rows."""
    return open_blend(LocalBlender(lake).create([Source(CODE, weight=6)], seed=7).id, lake)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A namespace of assigned order."""
    return new(tmp_path / "run")


def new(folder: Path, mesh: Mesh | None = None, lanes: int = LANES, **options: object) -> str:
    create_namespace(str(folder), mesh or Mesh(dp=2), **{"lanes": lanes, "order": "assigned"} | options)  # type: ignore[arg-type]
    return str(folder)


def producer(uri: str, blend: BlendHandle, lanes: list[int] | None = None, **options: object) -> Producer:
    return Producer(uri, BlendProduction(blend, **options), lanes, policy=Naive)  # type: ignore[arg-type]


def tokens_of(uri: str, rank: int) -> list[np.ndarray]:
    return [packed_rows(step).tokens for step in BatchReader(uri).read(StepRange(), rank)]


def expected(blend: BlendHandle, rank: int) -> list[np.ndarray]:
    return [batch.tokens for batch in blend.fetch(rank=rank, ranks=2)]


@pytest.mark.parametrize("order", ["assigned", "arrival"])
def test_producers_of_some_lanes_each_give_every_step_of_the_blend(
    tmp_path: Path, blend: BlendHandle, order: str
) -> None:
    uri = new(tmp_path, order=order)
    producers = [producer(uri, blend, [0, 2]), producer(uri, blend, [1])]
    threads = [threading.Thread(target=producer.run) for producer in producers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for rank in range(2):
        stored, whole = tokens_of(uri, rank), expected(blend, rank)
        assert len(stored) == N_STEPS
        if order == "assigned":
            assert all(map(np.array_equal, stored, whole))
        else:
            assert sorted(map(np.ndarray.tobytes, stored)) == sorted(map(np.ndarray.tobytes, whole))
    assert [lane.state for producer in producers for lane in producer.lanes] == ["finished"] * 3
    again = producer(uri, blend)
    again.run()
    assert [lane.state for lane in again.lanes] == ["finished"] * 3


class Slow(Production):
    """A blend whose steps come one at a time, when a test lets them."""

    def __init__(self, inner: Production) -> None:
        self.inner, self.steps_left = inner, threading.Semaphore(0)

    @property
    def source(self) -> dict[str, Json]:
        return dict(self.inner.source)

    def require_fit(self, namespace: Namespace) -> None:
        self.inner.require_fit(namespace)

    def batches(self, steps: StepRange, namespace: Namespace) -> Iterator[ProducedBatch]:
        for batch in self.inner.batches(steps, namespace):
            self.steps_left.acquire()
            yield batch


class Growing(Slow):
    """A blend whose tables lack the rows of a step when they are first asked for."""

    def __init__(self, inner: Production) -> None:
        super().__init__(inner)
        self.waited_for: list[int] = []

    def batches(self, steps: StepRange, namespace: Namespace) -> Iterator[ProducedBatch]:
        for batch in self.inner.batches(steps, namespace):
            if batch.step % 7 == 5 and batch.step not in self.waited_for:
                self.waited_for.append(batch.step)
                raise Stalled(f"Step {batch.step} has no rows yet.")
            yield batch


def test_a_producer_waits_for_tables_that_still_grow(
    uri: str, blend: BlendHandle, caplog: pytest.LogCaptureFixture
) -> None:
    growing = Growing(BlendProduction(blend))
    with caplog.at_level(logging.WARNING):
        Producer(uri, growing, policy=Naive).run()
    assert sorted(growing.waited_for) == [5, 12, 19]
    assert "Lane `2` waits for its next step: Step 5 has no rows yet." in caplog.text
    assert len(tokens_of(uri, 0)) == N_STEPS
    assert all(map(np.array_equal, tokens_of(uri, 0), expected(blend, 0)))


def test_a_lane_goes_on_with_whoever_opened_it_last_and_the_other_keeps_the_rest(
    uri: str, blend: BlendHandle, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow(BlendProduction(blend))
    first = Producer(uri, slow, policy=Naive)
    thread = threading.Thread(target=first.run)
    with caplog.at_level(logging.WARNING):
        thread.start()
        slow.steps_left.release(6)
        producer(uri, blend, [1]).run()
        slow.steps_left.release(3 * N_STEPS)
        thread.join(60)
    assert not thread.is_alive()
    assert [lane.state for lane in first.lanes] == ["finished", "taken over", "finished"]
    assert "has taken lane `1` over" in caplog.text
    assert all(map(np.array_equal, tokens_of(uri, 0), expected(blend, 0)))
    assert len(tokens_of(uri, 0)) == N_STEPS


def test_a_producer_is_stopped_from_another_thread_and_another_goes_on(uri: str, blend: BlendHandle) -> None:
    slow = Slow(BlendProduction(blend))
    first = Producer(uri, slow, policy=Naive)
    thread = threading.Thread(target=first.run)
    thread.start()
    slow.steps_left.release(4)
    first.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert [lane.state for lane in first.lanes] == ["stopped"] * 3
    producer(uri, blend).run()
    assert all(map(np.array_equal, tokens_of(uri, 0), expected(blend, 0)))


def test_a_producer_whose_lanes_are_all_taken_over_says_so(uri: str, blend: BlendHandle) -> None:
    first = producer(uri, blend)
    producer(uri, blend).run()
    with pytest.raises(Fenced, match="has taken lane"):
        first.run()


@pytest.mark.parametrize(
    "lanes, sentence",
    [
        ([3], "Lane 3 was asked for, and the namespace at .* has lanes 0 to 2"),
        ([0, -1], "Lane -1 was asked for"),
        ([], r"Lane \(none\) was asked for"),
    ],
)
def test_lanes_outside_the_namespace_are_refused(
    uri: str, blend: BlendHandle, lanes: list[int], sentence: str
) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        producer(uri, blend, lanes)


def test_lanes_that_come_and_go_cannot_share_a_blend(tmp_path: Path, blend: BlendHandle) -> None:
    create_namespace(str(tmp_path), Mesh(dp=2), order="arrival")
    with pytest.raises(InvalidRequest, match=r"lets lanes come and go, .* Create one with a number of lanes"):
        producer(str(tmp_path), blend)


@pytest.mark.parametrize(
    "mesh, options, sentence",
    [
        (Mesh(dp=4), {}, r"has 6 rows \(from step 0 on\), which the 4 dp indexes of the namespace cannot"),
        (Mesh(dp=2, cp=2), {"layout": "contiguous"}, "zigzag"),
    ],
)
def test_a_blend_that_does_not_fit_the_mesh_is_refused(
    tmp_path: Path, blend: BlendHandle, mesh: Mesh, options: dict[str, str], sentence: str
) -> None:
    uri = new(tmp_path, mesh, **options)
    with pytest.raises(FactoryError, match=sentence):
        producer(uri, blend)
    assert not (tmp_path / "log").exists()  # no lane was opened


def test_a_namespace_is_filled_from_one_blend(uri: str, lake: Settings, blend: BlendHandle) -> None:
    producer(uri, blend, [0])
    other = open_blend(LocalBlender(lake).create([Source(PROSE, weight=2)], seed=7).id, lake)
    with pytest.raises(NamespaceDiffers, match=rf"from blend {blend.id}, .* reads blend {other.id}"):
        producer(uri, other, [1])
    with pytest.raises(NamespaceDiffers, match=r"chunking row, .* chunking document"):
        producer(uri, blend, [1], chunking="document")


def test_an_error_of_a_lane_ends_the_producer_and_leaves_the_lanes_open(uri: str, blend: BlendHandle) -> None:
    def failing(step: Batch) -> Slices:
        if step.offset == 7:
            raise ValueError("no model answers")
        return cut({"ordinal": step.ordinal}, Mesh(dp=2))

    with pytest.raises(ValueError, match="no model answers"):
        producer(uri, blend, transform=failing).run()
    with pytest.raises(NamespaceDiffers, match=r"is filled from .*transform .*failing"):
        producer(uri, blend)


def test_what_a_transform_made_of_a_step_is_kept(uri: str, blend: BlendHandle) -> None:
    made: dict[int, np.ndarray] = {}

    def noise(step: Batch) -> Slices:
        made[step.offset] = np.random.default_rng().random((len(step), 4))
        return cut({"noise": made[step.offset], "ordinal": step.ordinal}, Mesh(dp=2))

    producer(uri, blend, transform=noise).run()
    for _ in range(2):
        steps = list(BatchReader(uri).read(StepRange(), 1))
        assert len(steps) == N_STEPS
        assert all(np.array_equal(step.noise, made[step.offset][3:]) for step in steps)
    assert steps[3].origin == {"blend": blend.id, "offset": 3}


def test_metrics_say_what_the_commits_came_to(uri: str, blend: BlendHandle) -> None:
    one = producer(uri, blend, [0, 1])
    one.run()
    server = serve_metrics("127.0.0.1", 0, partial(samples, one), FAMILIES)
    try:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics").read().decode()
    finally:
        server.shutdown()
        server.server_close()
    values = dict(line.rsplit(" ", 1) for line in answer.splitlines() if not line.startswith("#"))
    figures = one.lanes[0].writer.figures
    assert float(values['batches_committed_total{lane="0"}']) == 9 == figures.batches
    assert float(values['batches_committed_total{lane="1"}']) == 8
    assert float(values['batches_attempts_total{lane="0"}']) == figures.attempts > 0
    assert float(values['batches_committed_bytes_total{lane="0"}']) == figures.n_bytes > 0
    assert float(values['batches_lag_seconds_total{lane="0"}']) == figures.waited > 0
    assert float(values['batches_next_step{lane="1"}']) == 25
    assert float(values['batches_lane_running{lane="1"}']) == 0
    assert float(values['batches_window_seconds{lane="1"}']) > 0


@pytest.mark.parametrize("n_fenced", [1, 2, 3])
def test_a_lane_that_is_taken_while_lanes_are_opened_is_left_alone(
    uri: str, blend: BlendHandle, monkeypatch: pytest.MonkeyPatch, n_fenced: int
) -> None:
    """The lanes that were opened before it go on: nobody else would write them."""

    class Overtaken(BatchWriter):
        """A writer that loses its last lanes to a process that opens them at the same time."""

        def __init__(self, address: str, lane: int, **options: Any) -> None:
            if lane >= LANES - n_fenced:
                raise Fenced(f"Another process has taken lane `{lane}`.")
            super().__init__(address, lane, **options)

    monkeypatch.setattr(producer_module, "BatchWriter", Overtaken)
    if n_fenced == LANES:
        with pytest.raises(Fenced, match="has taken lane `2`"):
            Producer(uri, BlendProduction(blend))
        return
    producer = Producer(uri, BlendProduction(blend), policy=Naive)
    producer.run()
    assert [(lane.name, lane.state) for lane in producer.lanes] == [
        (f"{number}", "finished") for number in range(LANES - n_fenced)
    ]
    monkeypatch.undo()
    Producer(uri, BlendProduction(blend), policy=Naive).run()
    assert [step.offset for step in BatchReader(uri).read(StepRange(), 0)] == list(range(N_STEPS))
