"""Steps that are not a blend's, and a dataset of them; needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blender.errors import EndOfData, InvalidRequest
from blender.spec.step_range import StepRange
from blender.trainer.step_dataset import StepDataset
from blender.trainer.step_source import StepSource
from blender.trainer.torch import tensors


@dataclass
class Squares:
    """One step."""

    offset: int
    squares: np.ndarray


class SquareSource(StepSource[str]):
    """The squares of the even or of the odd places of each of ten steps of four numbers."""

    id = "squares"

    def read(self, steps: StepRange, share: str) -> Iterator[Squares]:
        if steps.offset > 10:
            raise EndOfData("There are ten steps. Begin with one of them.")
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


def _tensors(step: Squares) -> dict[str, Any]:
    return tensors(step, ["squares"])


def dataset(share: str = "even", **options: Any) -> StepDataset[str]:
    """A dataset of the squares."""
    return StepDataset(SquareSource(), share, tensors=_tensors, **options)
