"""A dataset and a loader over steps that are not a blend's."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

pytest.importorskip("torch")

from torch.utils.data import DataLoader

from blender.errors import EndOfData, InvalidRequest
from blender.trainer.torch import BlendLoader
from tests.blender.squares import dataset


def squares(items: Any) -> list[list[int]]:
    return [step["squares"].tolist() for step in items]


def test_a_dataset_gives_the_share_of_each_step_of_its_source() -> None:
    assert squares(dataset(offset=1, stop=3)) == [[16, 36], [64, 100]]
    assert squares(dataset("odd", offset=8)) == [[33**2, 35**2], [37**2, 39**2]]
    with pytest.raises(EndOfData):
        list(dataset(offset=9, stop=11))


def test_workers_split_the_steps_of_any_source() -> None:
    loaded = DataLoader(dataset(stop=7), batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert squares(loaded) == squares(dataset(stop=7))


@pytest.mark.invariant(
    "A dataset and its loader work over any source of steps (`blender/trainer/step_source.py`), which alone "
    "writes and checks the state."
)
def test_the_state_of_a_loader_is_that_of_its_source() -> None:
    loader = BlendLoader(dataset())
    assert squares(islice(loader, 3)) == squares(dataset(stop=3))
    assert loader.state_dict() == {"squares": {"next": 3}}
    resumed = BlendLoader(dataset())
    resumed.load_state_dict(loader.state_dict())
    assert squares(resumed) == squares(dataset(offset=3))
    with pytest.raises(InvalidRequest, match="other steps"):
        resumed.load_state_dict({"blend": "4f1c", "offset": 3})
