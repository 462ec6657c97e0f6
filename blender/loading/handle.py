"""A loading spec as a trainer reads it: steps for each rank of a mesh, embedded or from a service."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from blender.errors import InvalidRequest, UnknownLength
from blender.loading.step import LoadedStep
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.reader import BlendHandle
from blender.trainer.step_source import StepSource


class LoadingHandle(StepSource[int]):
    """The planned steps of a blend; a share is a rank of the spec's mesh.

    The state is the blend's, so a run may go on by `BlendDataset`, on another mesh or by another spec.
    """

    def __init__(self, spec: str, blend: str) -> None:
        self.spec = spec
        """The id of the spec."""
        self.id = blend

    @property
    @abstractmethod
    def blend(self) -> BlendHandle:
        """The blend of the spec."""

    @property
    @abstractmethod
    def mesh(self) -> Mesh:
        """The mesh of the spec."""

    @abstractmethod
    def read(self, steps: StepRange, share: int) -> Iterator[LoadedStep]:
        """The steps of a range as rank `share` reads them; raises EndOfData after the last one.

        Raises InvalidRequest for a rank that the mesh lacks, and for one that gets its rows by a broadcast.
        """

    def end(self) -> int:
        """The number of steps of the blend; raises UnknownLength for one that does not end."""
        return self.blend.end()

    def state(self, offset: int) -> dict[str, Any]:
        """The blend and the next step."""
        return self.blend.state(offset)

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
