"""Producers that wait for trainers and for a lane that is behind, and their sentences meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from blender.call_context import CallContext, use_context
from blender.errors import Stalled
from blender.global_batches import lag
from blender.global_batches.ending import end_namespace
from blender.global_batches.errors import Fenced, NamespaceEnded, NamespaceNotFound, WriterClosed
from blender.global_batches.namespace import OrderName, create_namespace
from blender.global_batches.status import namespace_status
from blender.global_batches.training_run import TrainingRun
from blender.global_batches.writer import BatchWriter, stop_writers
from blender.spec.mesh import Mesh
from factory.errors import ConfigurationError

BATCH = [{"ids": np.arange(4)}]


def namespace(folder: Path, order: OrderName = "assigned", lanes: int | None = 1) -> str:
    create_namespace(str(folder), Mesh(), lanes=lanes, order=order)
    return str(folder)


def put(writer: BatchWriter, n: int, timeout_s: float = 30.0) -> None:
    with use_context(CallContext(timeout_s=timeout_s)):
        for _ in range(n):
            writer.put(BATCH, None)


def put_and_commit(writer: BatchWriter) -> None:
    put(writer, 1)
    writer.flush()


@pytest.mark.parametrize("order", ["assigned", "arrival"])
def test_a_producer_waits_for_the_checkpoint_of_the_run_that_is_behind(
    tmp_path: Path, order: OrderName
) -> None:
    uri = namespace(tmp_path, order)
    run, ahead = TrainingRun(uri, "a"), TrainingRun(uri, "b")
    with BatchWriter(uri, max_lag=5) as writer:
        put(writer, 5)
        writer.flush()
        ahead.checkpoint("ckpt", 4)
        with pytest.raises(Stalled, match=r"is at step 5, 5 ahead of step 0, held by run `a`"):
            put(writer, 1, timeout_s=0.3)
        run.checkpoint("ckpt", 3)
        put(writer, 3)
        with pytest.raises(Stalled, match="8, 5 ahead of step 3"):
            put(writer, 1, timeout_s=0.3)
    run.close()
    with BatchWriter(uri, max_lag=5) as writer:
        put(writer, 1)
    assert writer.committed == 9


def test_a_lane_waits_for_the_one_that_owes_the_next_step(tmp_path: Path) -> None:
    uri = namespace(tmp_path, lanes=2)
    with BatchWriter(uri, 1, max_lag=4) as writer:
        put(writer, 2)  # steps 1 and 3
        with pytest.raises(
            Stalled, match=r"step 5, 5 ahead of step 0.*owes that step: `0`, which nobody has opened"
        ):
            put(writer, 1, timeout_s=0.3)
        with BatchWriter(uri, 0) as other:
            put(other, 1)
            other.flush()
            put(writer, 1)


class Never:
    """Commits when somebody waits for it."""

    def after(self, seconds: float, lanes: int) -> float:  # noqa: ARG002
        return 1e9


def put_until_it_waits(writer: BatchWriter) -> None:
    with pytest.raises(Stalled):
        put(writer, 1_000, timeout_s=1.5)


@pytest.mark.parametrize("has_run", [True, False])
def test_the_lanes_of_arrival_order_share_the_room(tmp_path: Path, has_run: bool) -> None:
    uri = namespace(tmp_path, "arrival", None)
    if has_run:
        TrainingRun(uri, "a")
    writers = [BatchWriter(uri, f"lane-{number}", policy=Never(), max_lag=40) for number in range(4)]
    for _ in range(2):  # each has seen the others commit
        for writer in writers:
            put_and_commit(writer)
    first = namespace_status(uri).steps if not has_run else 0
    for writer in writers:
        put_until_it_waits(writer)
    assert all(writer.sequence - writer.committed > 2 for writer in writers)
    for writer in writers:
        writer.flush()
    assert 40 <= namespace_status(uri).steps - first + len(writers) < 40 + 2 * len(writers)
    if has_run:
        with pytest.raises(Stalled, match="ahead of step 0, held by run `a`"):
            put(writers[0], 9, timeout_s=1.5)
    stop_writers(writers)


def test_lanes_that_begin_at_once_share_the_room_before_their_first_commit(tmp_path: Path) -> None:
    uri = namespace(tmp_path, "arrival", None)
    TrainingRun(uri, "a")
    writers = [BatchWriter(uri, f"lane-{number}", policy=Never(), max_lag=16) for number in range(8)]
    for writer in writers:
        put_until_it_waits(writer)
    for writer in writers:
        writer.flush()
    assert 16 <= namespace_status(uri).steps <= 16 + len(writers)
    stop_writers(writers)


def test_a_lane_looks_at_the_log_before_its_own_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_LOOK_S", 0.0)
    uri = namespace(tmp_path, "arrival", None)
    TrainingRun(uri, "a")
    idle = BatchWriter(uri, "idle", policy=Never(), max_lag=10)
    with BatchWriter(uri, "busy") as busy:
        put(busy, 9)
    put(idle, 1)
    with pytest.raises(Stalled, match="step 10, 10 ahead of step 0"):
        put(idle, 1, timeout_s=0.3)
    stop_writers([idle])


def test_a_wait_ends_when_the_writer_is_stopped(tmp_path: Path) -> None:
    uri = namespace(tmp_path)
    TrainingRun(uri, "a")
    writer = BatchWriter(uri, max_lag=1)
    put(writer, 1)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            put(writer, 1)
        except WriterClosed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    stop_writers([writer])
    thread.join(10)
    assert len(errors) == 1


def test_a_max_lag_that_lets_no_run_come_to_its_next_checkpoint_is_refused(tmp_path: Path) -> None:
    uri = namespace(tmp_path)
    run = TrainingRun(uri, "a", every=10, keep=2)
    with pytest.raises(ConfigurationError, match=r"every 10 steps and keeps 2, .*Give at least 20"):
        BatchWriter(uri, max_lag=19)
    with BatchWriter(uri, max_lag=20) as writer:
        for step in (10, 20, 30, 40):  # in the steady state, too
            put(writer, step - writer.sequence)
            writer.flush()
            run.checkpoint(f"ckpt-{step}", step)
        TrainingRun(uri, "b", start="oldest", every=100)  # it ends no producer that runs
        with pytest.raises(Stalled):
            put(writer, 40, timeout_s=0.5)


def test_a_wait_ends_with_the_lane_the_data_or_the_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = namespace(tmp_path / "taken")
    TrainingRun(uri, "a")
    writer = BatchWriter(uri, max_lag=1)
    put(writer, 1)
    writer.flush()
    BatchWriter(uri).close()  # another process takes the lane over
    with pytest.raises(Fenced):
        put_and_commit(writer)
    stop_writers([writer])
    uri = namespace(tmp_path / "ended", "arrival", None)
    TrainingRun(uri, "a")
    writer = BatchWriter(uri, max_lag=1)
    put(writer, 1)
    writer.flush()
    end_namespace(uri)
    with pytest.raises(NamespaceEnded):
        put_and_commit(writer)
    stop_writers([writer])
    monkeypatch.setattr(lag, "_LOOKS", 2)
    uri = namespace(tmp_path / "deleted")
    TrainingRun(uri, "a")
    writer = BatchWriter(uri, max_lag=1)
    put(writer, 1)
    writer.flush()
    (tmp_path / "deleted" / "namespace.json").unlink()
    with pytest.raises(NamespaceNotFound):
        put(writer, 1)
    stop_writers([writer])


@pytest.mark.parametrize("max_lag", [0, -1, 2.5, "many"])
def test_a_max_lag_that_is_no_number_of_steps_is_refused(tmp_path: Path, max_lag: int) -> None:
    with pytest.raises(ConfigurationError, match="max_lag"):
        BatchWriter(namespace(tmp_path), max_lag=max_lag)
