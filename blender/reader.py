"""A blend as a trainer reads it, through a server or in its own process: the same calls, the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from blender.batch import Batch
from blender.errors import InvalidRequest
from blender.records import BlendRecord, Description, ExplainedRow


class Blender(Protocol):
    """Serves blends by id: `blender.client.BlenderClient` and `blender.local.LocalBlender`."""

    def get(self, blend: str) -> BlendRecord:
        """A blend by id."""

    def describe(self, blend: str) -> Description:
        """Sources, sizes, weights and length of a blend."""

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""

    def fetch(
        self,
        blend: str,
        offset: int = 0,
        steps: int | None = None,
        rank: int = 0,
        ranks: int = 1,
        stride: int = 1,
    ) -> Iterator[Batch]:
        """One `Batch` per step."""


@dataclass(frozen=True)
class BlendHandle:
    """One blend of a Blender."""

    blender: Blender
    id: str

    def describe(self) -> Description:
        """Sources, sizes, weights and length."""
        return self.blender.describe(self.id)

    def explain(self, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""
        return self.blender.explain(self.id, offset)

    def fetch(
        self, offset: int = 0, steps: int | None = None, rank: int = 0, ranks: int = 1, stride: int = 1
    ) -> Iterator[Batch]:
        """One `Batch` per step from `offset` on: see `blender.client.BlenderClient.fetch`."""
        return self.blender.fetch(self.id, offset, steps, rank, ranks, stride)

    def check_history(self, blend: str, offset: int) -> None:
        """Raise InvalidRequest unless a reader of `blend` at step `offset` can continue with this blend.

        It can if the two are equal before that step: this is `blend`, or an update of it there or later.
        """
        one = self.id
        while one != blend:
            record = self.blender.get(one)
            if not record.parent:
                raise InvalidRequest(
                    f"The state belongs to blend {blend}, and blend {self.id} is not an update of it. "
                    "Open the blend of the state, or update it."
                )
            if record.offset < offset:
                raise InvalidRequest(
                    f"The state is at step {offset:,} of blend {blend}, from which blend {self.id} differs "
                    f"from step {record.offset:,} on. Update {blend} at step {offset:,} or later."
                )
            one = record.parent
