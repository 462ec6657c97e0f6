"""Producers that wait for trainers and for a lane that is behind, and their sentences meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from blender.call_context import CallContext, use_context
from blender.errors import Stalled
from blender.global_batches.errors import WriterClosed
from blender.global_batches.namespace import OrderName, create_namespace
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
    run = TrainingRun(uri, "a", every=10)
    with pytest.raises(ConfigurationError, match=r"10 steps later, and `max_lag` is 9: .*Give at least 10"):
        BatchWriter(uri, max_lag=9)
    with BatchWriter(uri, max_lag=15) as writer:
        put(writer, 15)
        writer.flush()
        run.checkpoint("ckpt-10", 10, keep=2)
        put(writer, 1)
    run = TrainingRun(uri, "b", every=20)
    with pytest.raises(ConfigurationError, match="`b`"):
        BatchWriter(uri, max_lag=15)


@pytest.mark.parametrize("max_lag", [0, -1, 2.5, "many"])
def test_a_max_lag_that_is_no_number_of_steps_is_refused(tmp_path: Path, max_lag: int) -> None:
    with pytest.raises(ConfigurationError, match="max_lag"):
        BatchWriter(namespace(tmp_path), max_lag=max_lag)
