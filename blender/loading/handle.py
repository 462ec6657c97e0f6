"""A loading spec as a trainer reads it: steps for each rank of a mesh, embedded or from a service."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

import numpy.typing as npt

from blender.errors import EndOfData, InvalidRequest, UnknownLength
from blender.loading.buffer_summary import BufferSummary
from blender.loading.raw_places import RawPlaces
from blender.loading.step import LoadedStep
from blender.loading.stretches import Stretch, Stretches
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.trainer.reader import BlendHandle
from blender.trainer.step_source import StepSource


class LoadingHandle(StepSource[int]):
    """The planned steps of a blend; a share is a rank of the spec's mesh.

    The state is the blend's, so a run may go on by `BlendDataset`, on another mesh or by another spec.
    """

    def __init__(self, spec: str, blend: str) -> None:
        self.spec = spec
        """The id of the spec, after `reweight` of the last one."""
        self.id = blend
        self._stretches = Stretches(blend, spec)
        self._last_reweight: tuple[int, dict[str, int]] | None = None

    @property
    @abstractmethod
    def blend(self) -> BlendHandle:
        """The blend of the spec."""

    @property
    @abstractmethod
    def mesh(self) -> Mesh:
        """The mesh of the spec."""

    @abstractmethod
    def _steps(self, stretch: Stretch, steps: StepRange, share: int) -> Generator[LoadedStep]:
        """The steps of a range under the blend of a stretch, as `read` gives them."""

    @abstractmethod
    def _summary(self, stretch: Stretch, offset: int) -> BufferSummary:
        """The summary of a step under the blend of a stretch."""

    @abstractmethod
    def _plan_raw(self, stretch: Stretch, offset: int, places: RawPlaces) -> dict[str, Any]:
        """A plan of a step under the blend of a stretch, as `Plan.described` gives it."""

    @abstractmethod
    def _updated(self, offset: int, weights: Mapping[str, int]) -> tuple[str, str]:
        """Update the blend, and plan step `offset` of the update; return its id and the id of its spec."""

    def read(self, steps: StepRange, share: int) -> Iterator[LoadedStep]:
        """The steps of a range as rank `share` reads them; raises EndOfData after the last one.

        Raises InvalidRequest for a rank that the mesh lacks, and for one that gets its rows by a broadcast.
        """
        steps.require_whole()
        rest = steps
        while True:
            stretch = self._stretches.of_step(rest.offset)
            part = rest.up_to(self._stretches.end_of(stretch))
            try:
                with closing(self._steps(stretch, part, share)) as steps_of_stretch:
                    for step in steps_of_stretch:
                        if not self._stretches.give(stretch, step.offset):
                            break
                        rest = rest.after(step.offset)
                        yield step
            except EndOfData:
                if self._stretches.of_step(rest.offset) == stretch:
                    if steps.stop is None and rest.offset > steps.offset:
                        return
                    raise
            if rest.steps == 0 or self._stretches.of_step(rest.offset) == stretch:
                return

    def summary_buffer(self, offset: int) -> BufferSummary:
        """The metadata of a step's rows and pictures: the input of a plan of yours (section 4.2).

        Raises InvalidRequest, and EndOfData.
        """
        offset = whole_number(offset, "offset")
        return self._summary(self._stretches.of_step(offset), offset)

    def plan_raw(
        self,
        offset: int,
        bucket: npt.ArrayLike,
        bin: npt.ArrayLike,
        *,
        node: npt.ArrayLike | None = None,
        node_bin: npt.ArrayLike | None = None,
        encoder_level: str | None = None,
    ) -> dict[str, Any]:
        """A plan of your own, checked and measured, as `factory loading plan --json` prints one.

        `Planner.plan_raw` has the same arguments. Ranks go on reading by the spec's strategy: one of
        yours delivers such a plan. Raises InvalidRequest, and EndOfData.
        """
        offset = whole_number(offset, "offset")
        places = RawPlaces.from_arrays(bucket, bin, node, node_bin, encoder_level)
        return self._plan_raw(self._stretches.of_step(offset), offset, places)

    def reweight(self, offset: int, weights: Mapping[str, int]) -> str:
        """Give sources other weights from step `offset` on, and return the blend that has them (section 2.1).

        The blend is an update of this one, so that all its steps are again a function of the offset; a
        source without a weight keeps its own. Readers under way go over to it at that step. Every process
        with a reader calls this with the same arguments, before it reads the step: then all read the same
        rows. A call with the arguments of the last one changes nothing.

        Raises InvalidRequest for a step that was read already, also by reading ahead, for weights that
        cannot be planned for the mesh, and InvalidBlend for others that make no blend.
        """
        offset = whole_number(offset, "offset")
        with self._stretches.change:
            if (offset, dict(weights)) != self._last_reweight:
                self._stretches.require_room(offset)
                blend, spec = self._updated(offset, weights)
                self._stretches.extend(offset, blend, spec)
                self.id, self.spec = blend, spec
                self._last_reweight = offset, dict(weights)
            return self.id

    def end(self) -> int:
        """The number of steps of the blend; raises UnknownLength for one that does not end."""
        return self.blend.end()

    def state(self, offset: int) -> dict[str, Any]:
        """The blend and the next step.

        After `reweight` the blend is the update, also before its first step, so that a run from that
        state keeps the decision.
        """
        return {"blend": self.id, "offset": offset}

    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The next step of a state of this blend, or of one that it updates at that step or later.

        Raises InvalidRequest for any other state, and for one behind the end of the data.
        """
        offset = self.blend.offset_of(state)
        try:
            end = self.end()
        except UnknownLength:
            return offset
        if offset > end:
            raise InvalidRequest(
                f"The state is at step {offset:,} of blend {self.id}, whose data end after {end:,} steps. "
                "Load the state of a step up to that one, or update the blend with more data."
            )
        return offset
