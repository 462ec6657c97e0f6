"""A sequence of steps that a training run reads, by a range and the share of each reader.

Anything read step by step is such a source: a dataset over it (`blender.trainer.torch`) cuts the range for
its workers, and saves and loads the state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from blender.errors import UnknownLength
from blender.spec.step_range import StepRange

Share = TypeVar("Share")
"""What one reader takes of every step: of a blend a `RankSlice`."""


class Step(Protocol):
    """The arrays of a step, as attributes by their names; `blender.batch.Batch` is one."""

    @property
    def offset(self) -> int:
        """The number of the step in the sequence."""


class StepSource(ABC, Generic[Share]):
    """A sequence of steps, the same for any number of readers."""

    id: str
    """Sources of the same id have the same steps."""

    stride: int = 1
    """The difference between the offsets of neighboring steps."""

    @abstractmethod
    def read(self, steps: StepRange, share: Share) -> Iterator[Step]:
        """The steps of a range in order; raises EndOfData after the last one, if the range has more."""

    def offset_after(self, step: Step) -> int:
        """The offset of the step after one that was read."""
        return step.offset + self.stride

    def name_of(self, offset: int) -> str:
        """A step in a sentence."""
        return f"step {offset:,}"

    def end(self) -> int:
        """The step after the last one; raises UnknownLength if there is none, or nobody knows it yet."""
        raise UnknownLength(f"Nobody knows where {self.id} ends. Give the dataset a `stop`.")

    @abstractmethod
    def state(self, offset: int) -> dict[str, Any]:
        """The state for a checkpoint of a reader with `offset` as its next step."""

    @abstractmethod
    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The next step of a reader with this state.

        Raises InvalidRequest for a state of a source with other steps before that one.
        """
