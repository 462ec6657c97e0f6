"""Datasets that hold batches for a run: in one process, in its workers, and in every rank of a job."""

from __future__ import annotations

import copy
import multiprocessing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

from blender.errors import InvalidRequest
from blender.global_batches.errors import BatchesGone, CheckpointDropped, RunTaken
from blender.global_batches.reader import BatchReader
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.status import namespace_status
from blender.global_batches.torch import BatchDataset
from blender.global_batches.training_run import TrainingRun
from blender.spec.mesh import Mesh
from blender.trainer.torch import BlendLoader
from factory.errors import FactoryError
from tests.blender.global_batches.written import Lane, batch, new_namespace

STEPS = 12


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A namespace of twelve steps that has ended."""
    address = new_namespace(tmp_path / "run", Mesh(dp=2), lanes=1)
    lane = Lane(address)
    lane.put(*(batch(number) for number in range(STEPS)))
    lane.close()
    return address


def dataset(uri: str, rank: int | None = 0, **options: Any) -> BatchDataset:
    return BatchDataset(BatchReader(uri), rank=rank, run="a", **options)


def read_steps(steps: BatchDataset, n: int) -> list[int]:
    return [step["offset"] for step in islice(steps, n)]


def test_a_run_goes_on_at_a_checkpoint_after_a_restart_and_in_the_process(uri: str) -> None:
    steps = dataset(uri)
    states = {}
    for name in ("one", "two", "three"):
        assert len(read_steps(steps, 3)) == 3
        states[name] = steps.state_dict()
        steps.checkpointed(name, keep=2)
    assert steps.held_steps.checkpoints == {"two": 6, "three": 9}
    steps.roll_back("two")
    assert read_steps(steps, 2) == [6, 7]
    assert reclaim_batches(uri).step == 6
    again = dataset(uri)
    assert again.held_steps.checkpoints == {"two": 6}
    with pytest.raises(CheckpointDropped, match="step 3 was asked for"):
        again.load_state_dict(states["one"])
    again.load_state_dict(states["two"])
    assert read_steps(again, 10) == [6, 7, 8, 9, 10, 11]
    with pytest.raises(RunTaken):
        steps.checkpointed("four")
    again.close_run()
    assert namespace_status(uri).runs == ()


def test_steps_before_the_held_ones_are_refused_by_a_sentence(uri: str) -> None:
    run = TrainingRun(uri, "b")
    run.checkpoint("ckpt", 5)
    reclaim_batches(uri)
    with pytest.raises(BatchesGone, match="step 0, and the batches before step 5"):
        dataset(uri)
    with pytest.raises(BatchesGone, match="step 4 was reclaimed"):
        next(iter(BatchDataset(BatchReader(uri), rank=0, offset=4)))
    steps = dataset(uri, offset="oldest")
    assert read_steps(steps, 2) == [5, 6]


def test_a_loop_under_way_is_not_rolled_back_and_marks_nothing(uri: str) -> None:
    steps = dataset(uri)
    loop = iter(steps)
    next(loop)
    steps.checkpointed("ckpt")
    with pytest.raises(InvalidRequest, match="under way"):
        steps.roll_back("ckpt")
    assert steps.held_steps.checkpoints == {"ckpt": 1}


def test_workers_and_copies_read_and_hold_nothing(uri: str) -> None:
    steps = dataset(uri)
    loader = BlendLoader(steps)
    assert next(iter(loader))["offset"] == 0
    with pytest.raises(InvalidRequest, match="has no run"):
        copy.copy(steps).checkpointed("ckpt")
    steps.checkpointed("ckpt")
    assert steps.held_steps.checkpoints == {"ckpt": 1}
    for tensors in DataLoader(steps, batch_size=None, num_workers=1, multiprocessing_context="spawn"):
        if tensors["offset"] == 4:
            break
    with pytest.raises(InvalidRequest):
        steps.checkpointed("by-workers")
    steps.checkpointed("by-workers", step=5)
    assert steps.held_steps.checkpoints == {"ckpt": 1, "by-workers": 5}


@pytest.mark.parametrize("options", [{"every": 3}, {"offset": "oldest"}])
def test_what_belongs_to_a_run_needs_one(uri: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="belong to a run"):
        BatchDataset(BatchReader(uri), rank=0, **options)


def test_a_process_of_a_job_that_torch_does_not_know_takes_no_run_over(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidRequest, match="one of 2 processes of a job"):
        dataset(uri, rank=None)
    assert namespace_status(uri).runs == ()


def _train(rank: int, uri: str, folder: str, outcomes: Any) -> None:
    """One rank of a job of two."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
    )
    try:
        steps = dataset(uri, rank=None, every=3)
        offsets = read_steps(steps, 3)
        steps.checkpointed("one")
        checkpoints = steps.held_steps.checkpoints
        read_steps(steps, 1 + rank)
        try:
            steps.checkpointed("two")
        except InvalidRequest as error:
            difference = str(error)
        if rank == 0:
            TrainingRun(uri, "a")  # another process takes the run over
        torch.distributed.barrier()
        read_steps(steps, 1 - rank)
        try:
            steps.checkpointed("two")
        except FactoryError as error:
            outcomes.put((rank, offsets, checkpoints, difference, type(error).__name__))
    finally:
        torch.distributed.destroy_process_group()


def test_the_ranks_of_a_job_hold_batches_by_one_mark(uri: str, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    outcomes = context.Queue()
    ranks = [
        context.Process(target=_train, args=(rank, uri, str(tmp_path), outcomes), daemon=True)
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    from_ranks = sorted(outcomes.get(timeout=120) for _ in ranks)
    for process in ranks:
        process.join(30)
    sentence = "The ranks are at different steps: 4, 5. Mark a checkpoint after the same step in all."
    assert from_ranks == [(rank, [0, 1, 2], {"one": 3}, sentence, "RunTaken") for rank in range(2)]
