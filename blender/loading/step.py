"""A step as a rank of a mesh reads it: its microbatches, in order.

    step.offset, step.plan                      # 1000, 0x1f3a...: equal plans mean equal rows on every rank
    step.microbatches[0].tokens                 # [rows, L]; with context parallelism the piece of this rank

Microbatches are views: arrays of a step are computed once for all of them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_numpy
from blender.batch import Batch, Block
from blender.chunks import Chunk, is_cut
from blender.errors import BlenderFailure
from blender.loading.pictures.delivered import DELIVERED
from blender.loading.pictures.loaded import (
    LoadedPictures,
    ReplacedPicture,
    loaded_pictures,
    placeholders,
)

MICROBATCH = "microbatch"  # column, int32: the microbatch of each row, ascending
PLAN = "plan"  # column, uint64: the hash of the plan


class LoadedStep:
    """The rows of a step that one rank reads."""

    def __init__(self, offset: int, arrow: pa.RecordBatch) -> None:
        """Raises BlenderFailure for rows of two plans."""
        self.offset, self.arrow = offset, arrow
        plans = as_numpy(arrow.column(PLAN))
        self.plan = int(plans[0].astype(np.uint64))
        """The hash of the plan."""
        if (plans != plans[0]).any():
            raise BlenderFailure(
                f"Step {offset:,} began under plan {self.plan:016x} and goes on under another one. Use one "
                "version of the strategy on all constructors."
            )

    def __len__(self) -> int:
        return self.arrow.num_rows

    @cached_property
    def microbatches(self) -> tuple[Batch | Chunk, ...]:
        """The microbatches in the order in which they are read, as views of the step."""
        numbers = as_numpy(self.arrow.column(MICROBATCH))
        ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        bounds = list(zip([0, *ends], ends, strict=False))
        if is_cut(self.arrow):
            whole = Chunk(self.arrow)
            return tuple(whole.of_rows(first, stop) for first, stop in bounds)
        block = Block(self.arrow)
        return tuple(
            Batch.of_block(self.offset, self.offset + 1, block, first, stop) for first, stop in bounds
        )

    @cached_property
    def images(self) -> tuple[LoadedPictures, ...]:
        """The pictures that the rank encodes, by microbatch of the encoder; empty for a spec without any."""
        return loaded_pictures(self.arrow)

    @cached_property
    def placeholders(self) -> tuple[dict[str, npt.NDArray[np.int32]], ...]:
        """The pictures in the rows of each microbatch: `row`, `position`, `tokens`, and who encodes each.

        `node`, `bin` and `index` name the encoder's node, its microbatch, and the place among the pictures
        of both. Empty for a spec without pictures.
        """
        return tuple(placeholders(microbatch.arrow) for microbatch in self.microbatches)

    @property
    def has_pictures(self) -> bool:
        """Whether the spec reads pictures."""
        return DELIVERED in self.arrow.schema.names

    @property
    def replaced_pictures(self) -> tuple[ReplacedPicture, ...]:
        """The pictures of this rank that became gray, with the reason of each."""
        return tuple(picture for pictures in self.images for picture in pictures.replacements)

    @property
    def has_tokens(self) -> bool:
        """Whether the rank gets tokens: stages between the first and the last of a pipeline get lengths."""
        return "tokens" in self.arrow.schema.names

    def __reduce__(self) -> tuple[object, ...]:
        return LoadedStep, (self.offset, self.arrow)
