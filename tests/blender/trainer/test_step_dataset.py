"""A loop begins where the state says, whatever loader reads the dataset, or it is refused."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import ChainDataset, DataLoader

from blender.errors import EndOfData, InvalidRequest
from blender.trainer.dataloader import JoinedSteps
from blender.trainer.launch import launched_rank
from blender.trainer.step_dataset import StepDataset
from blender.trainer.torch import BlendLoader
from blender.trainer.worker_loops import StepsOfWorkers
from factory.errors import ConfigurationError
from tests.blender.programs import end_workers
from tests.blender.squares import dataset

SECOND_LOOP = (
    "Workers of a DataLoader took steps of this dataset in an earlier loop, and they do not report how far "
    "that loop has come, so a second one would repeat or omit steps. Iterate over `BlendLoader(dataset, "
    "workers=...)`, which goes on where it was left, or load a state first."
)


def offsets(items: Any, n: int | None = None) -> list[int]:
    return [step["offset"] for step in islice(items, n)]


def state(step: int) -> dict[str, Any]:
    return {"squares": {"next": step}}


@pytest.fixture
def no_workers_left() -> Iterator[None]:
    yield
    end_workers()


@pytest.mark.parametrize(
    "loader",
    [
        lambda: dataset(),
        lambda: DataLoader(dataset(), batch_size=None),
        lambda: BlendLoader(dataset()),
        lambda: BlendLoader(dataset(), workers=2, context="fork"),
    ],
    ids=["dataset", "DataLoader", "BlendLoader", "BlendLoader with workers"],
)
def test_a_loop_that_is_entered_again_goes_on(loader: Callable[[], Any]) -> None:
    steps = loader()
    assert [offsets(steps, 3), offsets(steps, 2), offsets(steps)] == [[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]]
    with pytest.warns(
        UserWarning, match=r"This loop read no step: .* step 10 is the end\. For another epoch"
    ):
        assert offsets(steps) == []


def test_a_loop_that_is_left_before_its_first_step_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    for _ in range(2):
        steps = iter(BlendLoader(dataset()))
        del steps
    assert offsets(dataset(), 1) == [0]
    assert [str(warning.message) for warning in recwarn] == []


def test_a_step_by_its_index_is_refused_with_the_way_to_read_it() -> None:
    with pytest.raises(TypeError, match=r"in order, not by index\..*offset=3\)\)\)` is step 3"):
        dataset()[3]


def test_a_device_without_a_gpu_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidRequest, match=r"`device` is `cuda:0`, and PyTorch sees no GPU here\."):
        next(iter(BlendLoader(dataset(), device="cuda:0")))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_a_second_loop_over_workers_of_a_dataloader_is_refused_until_a_state_is_loaded(
    context: str, persistent: bool, no_workers_left: None
) -> None:
    steps = dataset(stop=9)
    loader = DataLoader(
        steps, batch_size=None, num_workers=2, multiprocessing_context=context, persistent_workers=persistent
    )
    assert offsets(loader, 3) == [0, 1, 2]
    with pytest.raises(StepsOfWorkers) as raised:
        offsets(loader)
    assert str(raised.value) == SECOND_LOOP
    steps.load_state_dict(state(3))
    assert offsets(loader) == [3, 4, 5, 6, 7, 8]
    with pytest.raises(StepsOfWorkers):  # one that came to its end, too
        offsets(loader)


def test_after_workers_of_a_dataloader_nothing_else_begins_or_reports_a_state(no_workers_left: None) -> None:
    steps = dataset()
    offsets(DataLoader(steps, batch_size=None, num_workers=1, multiprocessing_context="fork"), 2)
    copied = copy.deepcopy(steps)
    for refused in (steps, copied, BlendLoader(steps), DataLoader(steps, batch_size=None)):
        with pytest.raises(StepsOfWorkers):
            next(iter(refused))
    with pytest.raises(StepsOfWorkers):
        steps.state_dict()
    for loaded in (steps, copied):
        loaded.load_state_dict(state(2))
        assert offsets(loaded, 2) == [2, 3]
        assert loaded.state_dict() == state(4)


def test_workers_of_a_dataloader_begin_where_an_earlier_loop_was_left(no_workers_left: None) -> None:
    steps = dataset()
    assert offsets(steps, 4) == [0, 1, 2, 3]
    workers = DataLoader(steps, batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert offsets(workers) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("start", [8, 9, 10])
def test_more_workers_than_steps_that_are_left_read_to_the_end(start: int, no_workers_left: None) -> None:
    workers = {"num_workers": 3, "multiprocessing_context": "fork"}
    expected = list(range(start, 10))
    assert offsets(BlendLoader(dataset(offset=start), workers=3, context="fork")) == expected
    assert offsets(DataLoader(dataset(offset=start), batch_size=None, **workers)) == expected
    behind = DataLoader(dataset(offset=start + 3), batch_size=None, **workers)
    with pytest.raises(EndOfData, match="There are ten steps"):
        offsets(behind)


def test_the_latest_loop_alone_goes_on() -> None:
    for loader in (dataset(), BlendLoader(dataset())):
        earlier, later = iter(loader), iter(loader)
        assert offsets(earlier, 2) == [0, 1]
        assert offsets(later, 2) == [2, 3]
        with pytest.raises(InvalidRequest, match=r"Another loop .* has begun, and is at step 4"):
            next(earlier)
        assert offsets(later) == [4, 5, 6, 7, 8, 9]


def test_workers_of_a_dataloader_end_a_loop_that_began_before(no_workers_left: None) -> None:
    for loader in (dataset, lambda: BlendLoader(dataset())):
        earlier = iter(steps := loader())
        assert offsets(earlier, 2) == [0, 1]
        shared = steps if isinstance(steps, StepDataset) else steps.dataset
        later = DataLoader(shared, batch_size=None, num_workers=1, multiprocessing_context="fork")
        assert offsets(later, 2) == [2, 3]
        with pytest.raises(StepsOfWorkers):
            next(earlier)


def test_a_state_before_the_offset_makes_the_dataset_longer() -> None:
    steps = dataset(offset=4, stop=9)
    steps.load_state_dict(state(2))
    assert len(steps) == len(offsets(steps)) == 7


def test_a_chain_of_datasets_joins_no_steps_either() -> None:
    chain = ChainDataset([dataset(stop=2), dataset(offset=2, stop=4)])
    assert offsets(DataLoader(chain, batch_size=None)) == [0, 1, 2, 3]
    with pytest.raises(JoinedSteps):
        next(iter(DataLoader(chain, batch_size=2)))


def test_a_copy_begins_where_the_original_is_and_neither_moves_the_other(no_workers_left: None) -> None:
    original = dataset()
    assert offsets(original, 3) == [0, 1, 2]
    copied = pickle.loads(pickle.dumps(original))
    workers = DataLoader(copied, batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert offsets(workers) == [3, 4, 5, 6, 7, 8, 9]
    assert offsets(original) == [3, 4, 5, 6, 7, 8, 9]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, int], None]]:
    """A function that makes this process a rank in torch.distributed, without any other process."""
    for name in {"RANK", "WORLD_SIZE"} & set(os.environ):
        monkeypatch.delenv(name)

    def initialize(rank: int, ranks: int) -> None:
        torch.distributed.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())

    yield initialize
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "loader",
    [
        lambda steps: steps,
        lambda steps: DataLoader(steps, batch_size=None),
        lambda steps: DataLoader(steps, batch_size=None, num_workers=1, multiprocessing_context="fork"),
        lambda steps: DataLoader(steps, batch_size=None, num_workers=1, multiprocessing_context="spawn"),
        BlendLoader,
    ],
    ids=["dataset", "DataLoader", "forked worker", "spawned worker", "BlendLoader"],
)
def test_a_dataset_made_before_the_process_group_is_refused_at_its_first_step(
    loader: Callable[[Any], Any], join: Callable[[int, int], None], no_workers_left: None
) -> None:
    early, chosen = dataset(launch=launched_rank()), dataset()
    join(1, 4)
    with pytest.raises(ConfigurationError, match=r"was made as rank 0 of 1, and .* is rank 1 of 4 by now"):
        next(iter(loader(early)))
    assert offsets(chosen, 1) == [0]  # by a rank that the user gave
    assert offsets(dataset(launch=launched_rank()), 1) == [0]
