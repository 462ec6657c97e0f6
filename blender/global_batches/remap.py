"""The steps that a mesh of another size reads of batches, without a rewrite of any.

    remap = Remap(batch_mesh=Mesh(dp=2), mesh=Mesh(dp=4))      # twice the ranks: a step is 2 batches
    remap.slice_of(6, dp=3)                                 # (7, 1): dp index 1 of batch 7
    remap = Remap(batch_mesh=Mesh(dp=4), mesh=Mesh(dp=2))      # half the ranks: a batch is 2 steps
    remap.slice_of(13, dp=1)                                # (6, 3): dp index 3 of batch 6

A reader is at a position: the number of its next batch times `substeps`, plus the substep. So a position
follows from a batch alone, a mesh begins at any batch, and the meshes before it leave no trace.

        written dp=2        dp=4                  dp=1
        batch 6    a b      step 6   a b c d      step 6.0   a
        batch 7    c d                            step 6.1   b
                                                  step 7.0   c

The cp ranks of a dp index divide its rows anew (`format.cut`), and ranks of tensor and pipeline parallelism
read what their peers read. Section 4.1 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from blender.errors import InvalidRequest
from blender.global_batches.errors import NamespaceDiffers
from blender.spec.mesh import Axis, Mesh
from factory.counted import counted


class StepPosition(NamedTuple):
    """A batch, and the substep of it that a reader takes next."""

    step: int
    substep: int = 0


@dataclass(frozen=True)
class Remap:
    """How the ranks of `mesh` read batches that were made for `batch_mesh`.

    Raises NamespaceDiffers unless one dp is a whole multiple of the other, and one cp too.
    """

    batch_mesh: Mesh
    mesh: Mesh

    def __post_init__(self) -> None:
        axes: tuple[Axis, Axis] = ("dp", "cp")
        for axis in axes:
            size, extent = self.batch_mesh.extent(axis), self.mesh.extent(axis)
            if _is_other_ratio(size, extent):
                low, high = _nearest(size, extent)
                raise NamespaceDiffers(
                    f"The batches are made for dp={self.batch_mesh.dp},cp={self.batch_mesh.cp}, and the mesh "
                    f"is {self.mesh}. Read them with {axis}={low} or {axis}={high}, or write a namespace for "
                    "this mesh; tp and pp are free."
                )

    @property
    def batches(self) -> int:
        """The batches that are one step."""
        return max(1, self.mesh.dp // self.batch_mesh.dp)

    @property
    def substeps(self) -> int:
        """The steps that one batch is."""
        return max(1, self.batch_mesh.dp // self.mesh.dp)

    def slice_of(self, position: int, dp: int) -> tuple[int, int]:
        """The batch that a dp index reads at a position, and the dp index that it was written for."""
        batch, substep = divmod(position, self.substeps)
        return batch + dp // self.batch_mesh.dp, dp % self.batch_mesh.dp * self.substeps + substep

    def position(self, number: int) -> StepPosition:
        """The batch and the substep of a position."""
        return StepPosition(*divmod(number, self.substeps))

    def number(self, position: StepPosition) -> int:
        """The inverse of `position`."""
        return position.step * self.substeps + position.substep

    def number_after(self, step: int, substep: int) -> int:
        """The position after a step."""
        return step * self.substeps + substep + self.batches

    def require_batch_change(self, accept: bool, accumulate: int | None) -> None:
        """Raise NamespaceDiffers unless the caller has said what another number of rows in a step means.

        Raises InvalidRequest for words about another mesh than this one.
        """
        if accept and accumulate is not None:
            raise InvalidRequest(
                f"`accept_batch_change` and `accumulate` {accumulate} exclude each other: the optimizer "
                f"steps after each substep, or after {accumulate}. Give one of them."
            )
        if accumulate is not None and accumulate != self.substeps:
            raise InvalidRequest(
                f"`accumulate` is {accumulate}, and a batch for dp={self.batch_mesh.dp} is "
                f"{counted(self.substeps, 'step')} of dp={self.mesh.dp}. {self._instead()}"
            )
        if accept or accumulate is not None or self.batch_mesh.dp == self.mesh.dp:
            return
        if self.batches > 1:
            raise NamespaceDiffers(
                f"A step of dp={self.mesh.dp} is {self.batches} batches for dp={self.batch_mesh.dp}, so it "
                f"has {self.batches} times their rows. Accept that with `accept_batch_change=True`; "
                "`accumulate` keeps the rows of an optimizer step on fewer ranks alone."
            )
        raise NamespaceDiffers(
            f"A batch for dp={self.batch_mesh.dp} is {self.substeps} steps of dp={self.mesh.dp}. Give "
            f"`accumulate={self.substeps}` to step the optimizer after all of them, with the rows of a "
            "batch, or `accept_batch_change=True` to step it after each."
        )

    def require_whole_steps(self, first: int, stop: int | None) -> None:
        """Raise InvalidRequest for positions between which some batches are left over."""
        if stop is not None and stop > first and (left_over := (stop - first) % self.batches):
            raise InvalidRequest(
                f"Steps {first:,} to {stop:,} were asked for, and a step of dp={self.mesh.dp} is "
                f"{self.batches} batches, so that {left_over} would be left over. Stop at "
                f"{stop - left_over:,} or at {stop - left_over + self.batches:,}."
            )

    def left_over(self, uri: str, first: int, end: int) -> str:
        """The warning about batches at the end of data that are no whole step."""
        return (
            f"{uri} has ended after {end:,} steps, and a step of dp={self.mesh.dp} is {self.batches} of "
            f"them: {counted(end - first, 'step')} from step {first:,} on cannot be read. Go on from the "
            f"state there with dp={self.batch_mesh.dp}, or leave them out."
        )

    def _instead(self) -> str:
        if self.substeps > 1:
            return f"Give `accumulate={self.substeps}`, or `accept_batch_change=True`."
        return "Leave it out" + (", and give `accept_batch_change=True`." if self.batches > 1 else ".")


def _is_other_ratio(size: int, extent: int) -> bool:
    return size % extent != 0 and extent % size != 0


def _nearest(size: int, extent: int) -> tuple[int, int]:
    """The next smaller and the next larger extent that divides the written one, or is a multiple of it."""
    low = next(n for n in range(extent, 0, -1) if not _is_other_ratio(size, n))
    high = next(n for n in range(extent, extent + size + 1) if not _is_other_ratio(size, n))
    return low, high
