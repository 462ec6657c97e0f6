"""The steps that a training run holds, by its live checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blender.global_batches.errors import CheckpointDropped
from blender.global_batches.log.runs import START


@dataclass(frozen=True)
class HeldSteps:
    """The steps of a run from its oldest live checkpoint on."""

    run: str
    marks: Mapping[str, int]
    """The step after each live checkpoint, in the order of their marking; START before the first of them."""

    @property
    def checkpoints(self) -> dict[str, int]:
        """The step after each live checkpoint, by name, the latest last."""
        return {name: step for name, step in self.marks.items() if name != START}

    @property
    def first_step(self) -> int:
        """The first step that is held."""
        return min(self.marks.values())

    def step_of(self, name: str) -> int:
        """The step after a live checkpoint; raises CheckpointDropped for any other name."""
        if name not in self.checkpoints:
            raise CheckpointDropped(
                f"Run `{self.run}` does not hold the batches after checkpoint `{name}`: it was dropped, or "
                f"never marked. Live checkpoints: {self._listing()}."
            )
        return self.marks[name]

    def require(self, step: int, run: object = None) -> None:
        """Raise CheckpointDropped for a step before the first one that is held, in a state of `run`."""
        if step < self.first_step and run not in (None, self.run):
            raise CheckpointDropped(
                f"Run `{self.run}` holds the steps from {self.first_step:,} on, and the state is that of run "
                f"`{run}` at step {step:,}. Open that run, or a new one with `offset={step}`."
            )
        if step < self.first_step:
            raise CheckpointDropped(
                f"Run `{self.run}` holds the steps from {self.first_step:,} on, and step {step:,} was asked "
                f"for: the checkpoint there was dropped. Live checkpoints: {self._listing()}."
            )

    def with_checkpoint(self, name: str, step: int, keep: int) -> HeldSteps:
        """After one more checkpoint, with the last `keep`; raises CheckpointDropped for an earlier step."""
        self.require(step)
        earlier = [entry for entry in self.checkpoints.items() if entry[0] != name]
        return HeldSteps(self.run, dict([*earlier, (name, step)][-keep:]))

    def until(self, name: str) -> HeldSteps:
        """Without the checkpoints that were marked after one."""
        self.step_of(name)
        names = list(self.marks)
        return HeldSteps(self.run, {other: self.marks[other] for other in names[: names.index(name) + 1]})

    def _listing(self) -> str:
        listing = ", ".join(f"`{name}` (step {step:,})" for name, step in self.checkpoints.items())
        return listing or "none yet"
