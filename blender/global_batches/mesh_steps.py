"""The steps of a namespace as a dataset takes them: by their positions, which a mesh of any size can count.

steps = MeshSteps(reader, run="a")
steps.state(15)                 # of a batch in two substeps: {"step": 7, "substep": 1, "run": "a", ...}
steps.offset_of(state)          # 15
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.reader import BatchReader
from blender.global_batches.remap import StepPosition
from blender.spec.step_range import StepRange
from blender.trainer.step_source import Step, StepSource


class MeshSteps(StepSource[int]):
    """The steps of a reader's mesh; a share is a rank, and an offset a position of `Remap`."""

    def __init__(self, reader: BatchReader, run: str | None) -> None:
        self.reader = reader
        self.run = run
        self.id = reader.id
        self.stride = reader.remap.batches

    def read(self, steps: StepRange, share: int) -> Iterator[GlobalBatchSlice]:
        """The steps of a range of positions."""
        return self.reader.read_positions(steps, share)

    def offset_after(self, step: Step) -> int:
        """The position after a step that was read."""
        assert isinstance(step, GlobalBatchSlice), "they are what `read` gives"
        return self.reader.remap.number_after(step.offset, step.substep)

    def name_of(self, offset: int) -> str:
        """A position in a sentence."""
        step, substep = self.reader.remap.position(offset)
        return f"step {step:,}" + (f", substep {substep}" if substep else "")

    def end(self) -> int:
        """The position after the last batch; raises UnknownLength."""
        return self.offset(self.reader.end())

    def offset(self, step: int) -> int:
        """The position of a batch."""
        return self.reader.remap.number(StepPosition(step))

    def state(self, offset: int) -> dict[str, Any]:
        """The state of the reader at a position, with the run."""
        return self.reader.state(*self.reader.remap.position(offset), run=self.run)

    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The position of a state; raises as `BatchReader.position_of`."""
        return self.reader.remap.number(self.reader.position_of(state))
