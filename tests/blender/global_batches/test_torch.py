"""Steps of a namespace as tensors, by threads and by workers, and states that any run can load."""

from __future__ import annotations

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.utils.data import DataLoader

from blender.errors import EndOfData, InvalidRequest
from blender.global_batches.errors import OtherHistory
from blender.global_batches.reader import BatchReader
from blender.global_batches.torch import BatchDataset, slice_tensors
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.dataloader import JoinedSteps
from blender.trainer.torch import BlendLoader
from factory.errors import MachineError
from tests.blender.global_batches.written import Lane, batch, new_namespace
from tests.blender.programs import end_workers


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(dp=2, tp=2)


@pytest.fixture
def uri(tmp_path: Path, mesh: Mesh) -> str:
    """A namespace of twelve steps that has ended."""
    address = new_namespace(tmp_path, mesh, lanes=1)
    lane = Lane(address)
    lane.put(*(batch(number) for number in range(12)))
    lane.close()
    return address


@pytest.fixture
def dataset(uri: str, mesh: Mesh) -> BatchDataset:
    return BatchDataset(BatchReader(uri, mesh), rank=2)


def numbers(items: Any) -> list[int]:
    """The batches that items come from, each of dp index 1."""
    assert all((step["ids"] % 1_000).tolist() == [2, 3] for step in items)
    return [int(step["ids"][0]) // 1_000 for step in items]


def test_an_item_has_every_column_as_a_tensor_and_its_offset(dataset: BatchDataset) -> None:
    item = next(islice(dataset, 3, None))
    assert item.keys() == {"ids", "tokens", "offset"}
    assert item["offset"] == 3
    assert torch.equal(item["tokens"], torch.from_numpy(batch(3)["tokens"][2:]))
    assert item["ids"].dtype == torch.int32


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint64", "float16", "float64"])
@pytest.mark.parametrize("shape", [(3, 2), (0, 4), (3,)])
def test_tensors_share_the_memory_of_every_dtype(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    address = new_namespace(tmp_path)
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    Lane(address).put({"column": array})
    step = next(BatchReader(address).read(StepRange(0, 1), 0))
    tensor = slice_tensors(step)["column"]
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert array.size == 0 or tensor.data_ptr() == step.column.ctypes.data


def test_a_range_and_a_transform_are_those_of_any_dataset(uri: str, mesh: Mesh) -> None:
    first = BatchDataset(BatchReader(uri, mesh), offset=2, stop=5, rank=0, tensors=lambda step: step.offset)
    assert list(first) == [2, 3, 4]
    with pytest.raises(EndOfData):
        list(BatchDataset(BatchReader(uri, mesh), offset=10, stop=14, rank=0))


def test_the_rank_is_that_of_torchrun(uri: str, mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert BatchDataset(BatchReader(uri, mesh)).rank == 3
    with pytest.raises(InvalidRequest, match="This run has 4 ranks, and the mesh pp=1,dp=2,cp=1,tp=1 has 2"):
        BatchDataset(BatchReader(uri))


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_loader_resumes_where_its_state_was_taken(
    uri: str, mesh: Mesh, dataset: BatchDataset, workers: int
) -> None:
    loader = BlendLoader(dataset)
    assert numbers(list(islice(loader, 5))) == list(range(5))
    state = loader.state_dict()
    assert state == dataset.reader.state(5)
    resumed = BlendLoader(BatchDataset(BatchReader(uri, mesh), rank=3), workers=workers)
    resumed.load_state_dict(state)
    assert numbers(list(resumed)) == list(range(5, 12))  # every step once, in order
    assert resumed.state_dict()["step"] == 12
    with pytest.raises(OtherHistory):
        loader.load_state_dict(state | {"content": 32 * "1"})


def test_a_pickled_dataset_reads_the_same_steps(dataset: BatchDataset) -> None:
    assert numbers(list(pickle.loads(pickle.dumps(dataset)))) == list(range(12))


def test_a_forked_worker_is_refused_in_a_sentence(dataset: BatchDataset) -> None:
    forked = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(MachineError, match="forked after its parent had opened the reader"):
        list(forked)
    end_workers()


def test_a_loop_that_is_left_while_it_waits_leaves_no_thread(tmp_path: Path) -> None:
    address = new_namespace(tmp_path)
    Lane(address).put(batch(0))
    before = set(threading.enumerate())
    steps = iter(BlendLoader(BatchDataset(BatchReader(address), rank=0)))
    assert next(steps)["offset"] == 0
    threads = set(threading.enumerate()) - before
    assert len(threads) >= 2
    steps.close()  # type: ignore[attr-defined]
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def test_a_loop_waits_for_the_next_step(tmp_path: Path) -> None:
    address = new_namespace(tmp_path, lanes=1)
    lane = Lane(address)
    loader = BlendLoader(BatchDataset(BatchReader(address, longest_pause_s=0.05)))
    with ThreadPoolExecutor(1) as pool:
        offsets = pool.submit(lambda: [step["offset"] for step in loader])
        for number in range(5):
            lane.put(batch(number))
            time.sleep(0.02)
        assert not offsets.done()
        lane.close()
        assert offsets.result(10) == [0, 1, 2, 3, 4]


def test_len_is_known_once_the_producers_have_finished(uri: str, mesh: Mesh, tmp_path: Path) -> None:
    loader = BlendLoader(BatchDataset(BatchReader(uri, mesh), rank=2, offset=3))
    assert len(loader) == 9
    next(iter(loader))
    assert len(loader) == 9
    growing = new_namespace(tmp_path / "growing", mesh, lanes=1)
    Lane(growing).put(batch(0))
    dataset = BatchDataset(BatchReader(growing, mesh), rank=2)
    with pytest.raises(TypeError, match=r"has 1 step, and its producers have not finished\. Give .* `stop`"):
        len(dataset)
    assert len(BatchDataset(BatchReader(growing, mesh), rank=2, stop=5)) == 5


def test_a_dataloader_that_joins_steps_is_refused(dataset: BatchDataset) -> None:
    with pytest.raises(JoinedSteps, match="every step is a batch already"):
        next(iter(DataLoader(dataset, batch_size=4)))


def test_the_state_of_a_blend_is_refused(dataset: BatchDataset) -> None:
    with pytest.raises(InvalidRequest, match="not the state of a reader of durable batches, but of a blend"):
        dataset.load_state_dict({"blend": "0" * 32, "offset": 3})
