"""A blend as a trainer reads it, through a server or in its own process: the same calls, the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from blender.batch import Batch
from blender.errors import InvalidRequest
from blender.records import BlendRecord, Description, ExplainedRow


class Blender(Protocol):
    """What serves blends by id: `blender.client.BlenderClient`, `blender.local.LocalBlender`."""

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
        """One `Batch` a step."""


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
        """One `Batch` a step from `offset` on: see `blender.client.BlenderClient.fetch`."""
        return self.blender.fetch(self.id, offset, steps, rank, ranks, stride)

    def check_history(self, blend: str, offset: int) -> None:
        """Whether a reader of `blend` that came to `offset` can go on with this blend.

        It can where the two are one before that step: this one is `blend`, or updated from it there or later.
        Raises InvalidRequest where it cannot.
        """
        one = self.id
        while one != blend:
            record = self.blender.get(one)
            if not record.parent:
                raise InvalidRequest(
                    f"The state is one of blend {blend}, from which blend {self.id} was not updated. "
                    "Open the blend of the state, or update that."
                )
            if record.offset < offset:
                raise InvalidRequest(
                    f"The state is at step {offset:,} of blend {blend}, and blend {self.id} is another from "
                    f"step {record.offset:,} on. Update {blend} at step {offset:,} or later."
                )
            one = record.parent
