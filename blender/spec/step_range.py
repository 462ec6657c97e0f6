"""The steps that one fetch reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blender.spec.whole_number import whole_number


@dataclass(frozen=True)
class StepRange:
    """Every `stride`-th of the `steps` steps from `offset` on, the first included.

    `steps` None reads to the end of data. A reader checks the numbers (`require_whole`), and a blend whether
    it has the steps (`BlendOrder.check`).
    """

    offset: int = 0
    steps: int | None = None
    stride: int = 1

    @property
    def stop(self) -> int | None:
        """The step after the last one; None for the end of data."""
        return None if self.steps is None else self.offset + self.steps

    def require_whole(self) -> None:
        """Raise InvalidRequest, which names the field, for a number that is not whole, or negative."""
        whole_number(self.offset, "offset")
        whole_number(self.stride, "stride", least=1)
        if self.steps is not None:
            whole_number(self.steps, "steps")

    def up_to(self, end: int | None) -> StepRange:
        """The steps of the range before step `end`; all of them for None."""
        if end is None or (self.stop is not None and self.stop <= end):
            return self
        return replace(self, steps=max(0, end - self.offset))

    def after(self, step: int) -> StepRange:
        """The steps of the range behind `step`, one of them."""
        first = step + self.stride
        return replace(self, offset=first, steps=None if self.stop is None else max(0, self.stop - first))
