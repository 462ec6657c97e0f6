"""Datasets of a mesh of another dp: items, workers, states and marks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader, IterableDataset

from blender.errors import InvalidRequest
from blender.global_batches.errors import CheckpointDropped
from blender.global_batches.reader import BatchReader
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.torch import BatchDataset, slice_tensors
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.torch import BlendLoader
from factory.errors import ConfigurationError
from tests.blender.global_batches.written import Lane, batch, new_namespace

STEPS = 9


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A namespace of nine batches of two dp indexes that has ended."""
    address = new_namespace(tmp_path / "run", Mesh(dp=2), lanes=1)
    lane = Lane(address)
    lane.put(*(batch(number) for number in range(STEPS)))
    lane.close()
    return address


def dataset(uri: str, dp: int, rank: int = 0, **options: Any) -> BatchDataset:
    return BatchDataset(BatchReader(uri, Mesh(dp=dp), accept_batch_change=True), rank=rank, **options)


def rows(items: Any) -> list[tuple[int, ...]]:
    """The batch and the rows of each item."""
    return [(int(tensors["ids"][0]) // 1_000, *(tensors["ids"] % 1_000).tolist()) for tensors in items]


def test_each_rank_of_a_wider_mesh_takes_its_rows_of_one_batch(uri: str) -> None:
    items = [list(islice(dataset(uri, 4, rank, stop=8), 2)) for rank in range(4)]
    assert [rows(of_rank) for of_rank in items] == [
        [(0, 0, 1), (2, 0, 1)],
        [(0, 2, 3), (2, 2, 3)],
        [(1, 0, 1), (3, 0, 1)],
        [(1, 2, 3), (3, 2, 3)],
    ]
    assert all([tensors["offset"] for tensors in of_rank] == [0, 2] for of_rank in items)
    assert torch.equal(items[3][1]["tokens"], torch.from_numpy(batch(3)["tokens"][2:]))


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("dp", [1, 4])
def test_a_loader_goes_on_with_every_step_once_from_a_state_of_another_mesh(
    uri: str, dp: int, workers: int
) -> None:
    first = BlendLoader(dataset(uri, 2, stop=3))
    assert rows(first) == [(0, 0, 1), (1, 0, 1), (2, 0, 1)]
    loader = BlendLoader(dataset(uri, dp, stop=9), workers=workers)
    loader.load_state_dict(first.state_dict())
    order = rows(islice(loader, 1))
    assert loader.state_dict()["substep"] == (1 if dp == 1 else 0)
    again = BlendLoader(dataset(uri, dp, stop=9))
    again.load_state_dict(loader.state_dict())
    order += rows(again)
    if dp == 1:
        assert order == [(number, row, row + 1) for number in range(3, 9) for row in (0, 2)]
    else:
        assert order == [(3, 0, 1), (5, 0, 1), (7, 0, 1)]


def test_len_counts_the_steps_of_the_mesh(uri: str) -> None:
    assert len(dataset(uri, 1)) == 18
    assert len(dataset(uri, 1, offset=2, stop=5)) == 6
    assert len(dataset(uri, 4)) == 4  # and a batch that is half a step
    assert len(dataset(uri, 4, offset=1, stop=9)) == 4
    for options in ({"stop": 3}, {"offset": 2, "stop": 9}):
        with pytest.raises(InvalidRequest, match="1 would be left over"):
            list(dataset(uri, 4, **options))
    with pytest.raises(InvalidRequest, match="Steps 3 to 8 were asked for"):
        dataset(uri, 4, stop=8).load_state_dict(dataset(uri, 2).reader.state(3))
    with pytest.raises(InvalidRequest, match="`stop` is step 3 and `offset` step 5"):
        dataset(uri, 1, offset=5, stop=3)


def test_an_item_has_its_substep_and_a_loop_says_where_it_is(uri: str) -> None:
    steps = dataset(uri, 1)
    assert [(tensors["offset"], tensors["substep"]) for tensors in islice(steps, 3)] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    loop = iter(steps)
    next(loop)
    with pytest.raises(InvalidRequest, match=r"under way, at step 2, and"):
        steps.load_state_dict(steps.reader.state(0))
    next(loop)
    with pytest.raises(InvalidRequest, match=r"under way, at step 2, substep 1, and"):
        steps.load_state_dict(steps.reader.state(0))
    assert "substep" not in slice_tensors(next(BatchReader(uri).read(StepRange(), 0)))


def test_a_run_marks_whole_batches_and_goes_back_to_them_on_any_mesh(uri: str) -> None:
    steps = dataset(uri, 1, run="a")
    assert len(list(islice(steps, 3))) == 3
    with pytest.raises(InvalidRequest, match=r"in the midst of batch 1, at its substep 1 of 2\. Mark one"):
        steps.checkpointed("midst")
    assert len(list(islice(steps, 1))) == 1
    state = steps.state_dict()
    assert (state["step"], state["substep"], state["dp"], state["run"]) == (2, 0, 1, "a")
    steps.checkpointed("two", keep=1)
    wider = dataset(uri, 4, run="a", offset="oldest")
    assert rows(islice(wider, 2)) == [(2, 0, 1), (4, 0, 1)]
    wider.roll_back("two")
    assert rows(islice(wider, 1)) == [(2, 0, 1)]
    assert reclaim_batches(uri).step == 2


class StateOfWorker(IterableDataset[Any]):
    """A dataset whose worker asks for the state that a StatefulDataLoader collects."""

    def __init__(self, steps: BatchDataset) -> None:
        self.steps = steps

    def __iter__(self) -> Iterator[Any]:
        for _ in self.steps:
            yield self.steps.state_dict()


def test_a_worker_gives_no_state_within_a_batch_that_is_accumulated(uri: str) -> None:
    steps = BatchDataset(BatchReader(uri, Mesh(dp=1), accumulate=2), rank=0)
    one_worker: dict[str, Any] = {
        "batch_size": None,
        "num_workers": 1,
        "multiprocessing_context": "spawn",
    }
    loader = DataLoader(StateOfWorker(steps), **one_worker)
    with pytest.raises(InvalidRequest, match="A state of workers would go on within a batch"):
        next(iter(loader))
    assert next(iter(DataLoader(StateOfWorker(dataset(uri, 1)), **one_worker)))["next_step"] == 1


class LoadedByWorker(IterableDataset[Any]):
    """A dataset whose worker loads the state that a StatefulDataLoader gives back."""

    def __init__(self, steps: BatchDataset, state: dict[str, Any]) -> None:
        self.steps, self.state = steps, state

    def __iter__(self) -> Iterator[Any]:
        self.steps.load_state_dict(self.state)
        yield from self.steps


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
def test_the_state_of_a_worker_is_refused_on_another_mesh(uri: str, is_of_earlier_version: bool) -> None:
    state = BatchReader(uri).state(4)
    if is_of_earlier_version:
        state = {name: state[name] for name in ("namespace", "step", "content")}
    options: dict[str, Any] = {
        "batch_size": None,
        "num_workers": 1,
        "multiprocessing_context": "spawn",
    }
    of_worker = {"state": state, "next_step": 4}
    same = DataLoader(LoadedByWorker(dataset(uri, 2), of_worker), **options)
    assert rows([next(iter(same))]) == [(4, 0, 1)]
    for dp in (1, 4):
        other = DataLoader(LoadedByWorker(dataset(uri, dp), of_worker), **options)
        with pytest.raises(InvalidRequest, match=f"counts steps of dp=2, and this mesh has dp={dp}"):
            next(iter(other))


@pytest.mark.parametrize("every, n_steps", [(None, 2), (1, 2), (2, 2), (3, 4)])
def test_a_run_on_a_wider_mesh_marks_whole_steps_apart(uri: str, every: int | None, n_steps: int) -> None:
    wider = BatchReader(uri, Mesh(dp=4), accept_batch_change=True)
    BatchDataset(wider, rank=0, run="wide", every=every)
    with pytest.raises(ConfigurationError, match=f"every {n_steps} steps and keeps 2, and `max_lag` is 3"):
        BatchWriter(uri, 0, max_lag=3)


def test_a_state_of_another_run_says_which_one_held_its_batches(uri: str) -> None:
    state = BatchReader(uri).state(3, run="a")
    with pytest.raises(
        CheckpointDropped, match=r"Run `b` holds the steps from 5 on, and .* run `a` at step 3"
    ):
        dataset(uri, 2, run="b", offset=5).load_state_dict(state)
