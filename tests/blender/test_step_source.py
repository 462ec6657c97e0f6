"""A dataset and a loader over steps that are not a blend's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from torch.utils.data import DataLoader

from blender.errors import EndOfData, InvalidRequest
from blender.spec.step_range import StepRange
from blender.step_source import StepSource
from blender.torch import BlendLoader, StepDataset, tensors


@dataclass
class Squares:
    """One step."""

    offset: int
    squares: np.ndarray


class SquareSource(StepSource[str]):
    """The squares of the even or of the odd places of each of ten steps of four numbers."""

    id = "squares"

    def read(self, steps: StepRange, share: str) -> Iterator[Squares]:
        for offset in range(steps.offset, 10 if steps.stop is None else steps.stop, steps.stride):
            if offset >= 10:
                raise EndOfData("There are ten steps. Stop there.")
            numbers = np.arange(4 * offset, 4 * offset + 4)
            yield Squares(offset, numbers[numbers % 2 == (share == "odd")] ** 2)

    def state(self, offset: int) -> dict[str, Any]:
        return {"squares": {"next": offset}}

    def offset_of(self, state: Mapping[str, Any]) -> int:
        if "squares" not in state:
            raise InvalidRequest("The state belongs to other steps. Load one of squares.")
        return int(state["squares"]["next"])


def dataset(share: str = "even", **options: Any) -> StepDataset[str]:
    return StepDataset(SquareSource(), share, transform=lambda step: tensors(step, ["squares"]), **options)


def squares(items: Any) -> list[list[int]]:
    return [item["squares"].tolist() for item in items]


def test_a_dataset_gives_the_share_of_each_step_of_its_source() -> None:
    assert squares(dataset(offset=1, stop=3)) == [[16, 36], [64, 100]]
    assert squares(dataset("odd", offset=8)) == [[33**2, 35**2], [37**2, 39**2]]
    with pytest.raises(EndOfData):
        list(dataset(offset=9, stop=11))


def test_workers_split_the_steps_of_any_source() -> None:
    loaded = DataLoader(dataset(stop=7), batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert squares(loaded) == squares(dataset(stop=7))


def test_the_state_of_a_loader_is_that_of_its_source() -> None:
    loader = BlendLoader(dataset())
    assert squares(islice(loader, 3)) == squares(dataset(stop=3))
    assert loader.state_dict() == {"squares": {"next": 3}}
    resumed = BlendLoader(dataset())
    resumed.load_state_dict(loader.state_dict())
    assert squares(resumed) == squares(dataset(offset=3))
    with pytest.raises(InvalidRequest, match="other steps"):
        resumed.load_state_dict({"blend": "4f1c", "offset": 3})
