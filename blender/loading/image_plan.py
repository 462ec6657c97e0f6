"""Where the pictures of a step are encoded: the reader and the microbatch of each.

    plan.images.node                      # array: the node of the encoder's level that gets each picture
    plan.images.of_node(3, bin=0)         # array: pictures that node 3 encodes in microbatch 0, in order

Pictures are numbered by their rows in the step, then by their place in the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from blender.loading.costs import Costs

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StepImages:
    """The pictures of a step's rows, a value a picture; all shapes are [pictures]."""

    row: Ints
    """The place of its row in the step, ascending."""
    number: Ints
    """Its place among the pictures of the row."""
    width: Ints
    height: Ints
    facts: Mapping[str, Costs] = field(default_factory=dict)
    """By name: `n_patches`, `n_pixels` and `n_tokens` of each picture, as a model takes it."""

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True)
class ImagePlan:
    """The place of each picture of a step in the encoder's part of the mesh."""

    images: StepImages
    node: Ints
    """The node of the level that the encoder is distributed over, such as a rank for `WORLD`."""
    bin: Ints
    """The microbatch in which that node encodes it."""
    costs: Costs
    nodes: int
    bins: int

    def of_node(self, node: int, bin: int) -> Ints:
        """The pictures that a node encodes in a microbatch, in the step's order."""
        return np.flatnonzero((self.node == node) & (self.bin == bin))
