"""The steps that one fetch reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepRange:
    """Every `stride`-th of the `steps` steps from `offset` on, the first included.

    `steps` None reads to the end of data. A blend checks the numbers (`BlendOrder.check`).
    """

    offset: int = 0
    steps: int | None = None
    stride: int = 1

    @property
    def stop(self) -> int | None:
        """The step after the last one; None for the end of data."""
        return None if self.steps is None else self.offset + self.steps
