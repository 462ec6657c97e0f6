"""Where the pictures of a step are encoded: the reader and the microbatch of each.

    plan.images.node                      # array: the node of the encoder's level that gets each picture
    plan.images.of_node(3, bin=0)         # array: pictures that node 3 encodes in microbatch 0, in order
    plan.images.slot                      # array: where its tokens go among the pictures of their microbatch

Pictures are numbered by their rows in the step, then by their place in the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.costs import Costs, sums

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

    def of_rows(self, marks: npt.NDArray[np.bool_]) -> StepImages:
        """The pictures of the marked rows, which are numbered anew."""
        own = marks[self.row]
        new_row = np.cumsum(marks) - 1
        facts = {name: values[own] for name, values in self.facts.items()}
        row = new_row[self.row[own]]
        return StepImages(row, self.number[own], self.width[own], self.height[own], facts)


@dataclass(frozen=True, eq=False)
class ImagePlan:
    """The place of each picture of a step in the encoder's part of the mesh. Raises InvalidRequest.

    Each picture has one place in the encoder (`node`, `bin`, `encoder_slot`) and one in the backbone (the
    `bucket` and `microbatch` of its row, `slot`): the map of the all-to-all between both. Shapes [pictures].
    """

    images: StepImages
    node: Ints
    """The node of the level that the encoder is distributed over, such as a rank for `WORLD`."""
    bin: Ints
    """The microbatch in which that node encodes it."""
    costs: Costs
    nodes: int
    bins: int
    bucket: Ints
    """The backbone's bucket of its row."""
    microbatch: Ints
    """The backbone's microbatch of its row."""
    ranks: tuple[tuple[int, ...], ...] = ()
    """The ranks of each node."""

    def __post_init__(self) -> None:
        n = len(self.images)
        for name, extent in (("node", self.nodes), ("bin", self.bins)):
            places = np.asarray(getattr(self, name))
            if places.shape != (n,) or places.dtype.kind not in "iu":
                raise InvalidRequest(
                    f"The plan gives a {name} to {places.size:,} pictures, and the step has {n:,}. Plan each "
                    "picture once, by a whole number."
                )
            outside = np.flatnonzero((places < 0) | (places >= extent))
            if len(outside):
                row, number = (int(column[outside[0]]) for column in (self.images.row, self.images.number))
                raise InvalidRequest(
                    f"The plan gives {name} {places[outside[0]]} to picture {number} of row {row:,}, and "
                    f"there are 0 to {extent - 1}. Plan each picture of the step on one node."
                )

    def of_node(self, node: int, bin: int) -> Ints:
        """The pictures that a node encodes in a microbatch, in the step's order."""
        return np.flatnonzero((self.node == node) & (self.bin == bin))

    @cached_property
    def encoder_slot(self) -> Ints:
        """The place of each picture on its node and in its microbatch, in the step's order."""
        return _places_within(self.node * self.bins + self.bin)

    @cached_property
    def slot(self) -> Ints:
        """The place of each picture in its bucket and the backbone's microbatch."""
        most = int(self.microbatch.max(initial=0)) + 1
        return _places_within(self.bucket * most + self.microbatch)

    @cached_property
    def loads(self) -> Costs:
        """The cost of each node and microbatch; shape [nodes, bins]."""
        places = self.node * self.bins + self.bin
        return sums(self.costs, places, self.nodes * self.bins).reshape(self.nodes, self.bins)

    @cached_property
    def as_given(self) -> Costs:
        """The loads if pictures were encoded in the microbatch of their row, as many on each node."""
        node = shares(self.microbatch, self.bucket, self.nodes)
        bins = max(self.bins, int(self.microbatch.max(initial=0)) + 1)
        return sums(self.costs, node * bins + self.microbatch, self.nodes * bins).reshape(self.nodes, bins)


def shares(microbatch: Ints, bucket: Ints, nodes: int) -> Ints:
    """Nodes for the pictures of each microbatch, as many for each, neighbors of a bucket together."""
    order = np.lexsort((bucket, microbatch))
    counts = np.bincount(microbatch)
    node = np.empty_like(microbatch)
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    node[order] = place * nodes // np.repeat(counts, counts)
    return node


def _places_within(group: Ints) -> Ints:
    """The place of each number among the equal ones, in order."""
    order = np.argsort(group, kind="stable")
    counts = np.bincount(group)
    places = np.empty_like(group)
    places[order] = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places
