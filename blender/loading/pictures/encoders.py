"""Which rank gets the patches of a picture: by the plan of the encoder, or with the rows of the picture.

    places = EncoderPlaces.from_plan(tree, spec.broadcasts, first_plan)
    places.of_rank[3]                           # (3,): the nodes that rank 3 reads pictures for
    encoding_of(plan, sizes)                    # the node and microbatch of every picture

Without a plan of pictures a bucket is a node, and its first stage encodes the pictures of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest, InvalidStrategy
from blender.loading.image_plan import ImagePlan
from blender.loading.plan import Plan
from blender.loading.tree import LEVELS, Broadcast, ClientPlaceTree

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Encoding:
    """The place of pictures in the encoder's part of the mesh; all shapes are [pictures]."""

    node: Ints
    bin: Ints
    index: Ints
    """Its place among the pictures of its node and microbatch."""
    bins: int


@dataclass(frozen=True)
class EncoderPlaces:
    """The nodes that each reading rank encodes for, the same at every step."""

    of_rank: Mapping[int, tuple[int, ...]]
    """The nodes that a rank reads pictures for, for itself and for the ranks to which it broadcasts."""
    of_bucket: Mapping[int, tuple[int, ...]]
    """The nodes of all ranks that read in a bucket."""
    is_planned: bool
    """Whether the plan says who encodes a picture."""

    @classmethod
    def from_plan(cls, tree: ClientPlaceTree, broadcasts: Sequence[Broadcast], first: Plan) -> EncoderPlaces:
        """The places by the plan of step 0; raises InvalidRequest for a plan of no level of the tree."""
        of_rank: dict[int, set[int]] = {consumer.rank: set() for consumer in first.consumers}
        if first.images is None:
            for consumer in first.consumers:
                if tree.mesh.coordinate(consumer.rank).pp == 0:
                    of_rank[consumer.rank].add(consumer.bucket)
        else:
            for node, ranks in enumerate(_encoding_ranks(tree, first.images)):
                for rank in ranks:
                    of_rank[tree.reader(rank, broadcasts)].add(node)
        of_bucket: dict[int, set[int]] = {bucket: set() for bucket in range(first.buckets)}
        for consumer in first.consumers:
            of_bucket[consumer.bucket] |= of_rank[consumer.rank]
        return cls(
            {rank: tuple(sorted(nodes)) for rank, nodes in of_rank.items()},
            {bucket: tuple(sorted(nodes)) for bucket, nodes in of_bucket.items()},
            first.images is not None,
        )

    def require_like(self, plan: Plan) -> None:
        """Raise InvalidStrategy for a step with planned pictures where step 0 has none, and the reverse."""
        if (plan.images is not None) != self.is_planned:
            with_them, without = (plan.step.offset, 0) if plan.images is not None else (0, plan.step.offset)
            raise InvalidStrategy(
                f"The strategy plans the pictures of step {with_them:,}, and not those of step {without:,}. "
                "Plan them at every step, also where there are none."
            )


def _encoding_ranks(tree: ClientPlaceTree, images: ImagePlan) -> Sequence[Sequence[int]]:
    """The ranks of each node that get its pictures: of a backbone's node the first stage, else all of them.

    Raises InvalidRequest for a plan without ranks of nodes at no level of the tree.
    """
    for level in reversed(LEVELS):
        nodes = tree.nodes(level)
        if images.ranks == nodes or (not images.ranks and len(nodes) == images.nodes):
            if level == "WORLD":
                return nodes
            return [[rank for rank in ranks if tree.mesh.coordinate(rank).pp == 0] for ranks in nodes]
    if images.ranks:
        return images.ranks  # of a tree of the encoder's own
    counts = ", ".join(f"{len(tree.nodes(level)):,} at `{level}`" for level in LEVELS)
    raise InvalidRequest(
        f"The plan of pictures has {images.nodes:,} nodes, and the tree has {counts}. Distribute the "
        "pictures over a level of the tree."
    )


def encoding_of(plan: Plan, row: Ints, number: Ints) -> Encoding:
    """Where pictures, named by their rows in the step and their numbers in the rows, are encoded.

    Without a plan of pictures they must be all pictures of their microbatches. Raises InvalidRequest for
    pictures that the plan lacks.
    """
    if plan.images is None:
        node, bin = plan.bucket[row], plan.bin[row]
        return Encoding(node, bin, _counted(node * plan.bins + bin), plan.bins)
    images = plan.images
    all_index = _counted(images.node * images.bins + images.bin)
    index = picture_index(images.images.row, images.images.number, row, number)
    if (index < 0).any():
        missing = int(np.argmax(index < 0))
        raise InvalidRequest(
            f"The plan of step {plan.step.offset:,} has no picture {number[missing]} of row {row[missing]}, "
            "which the table has. Make the cost index of the table again: `factory loading index`."
        )
    return Encoding(images.node[index], images.bin[index], all_index[index], images.bins)


def _counted(group: Ints) -> Ints:
    """The number of earlier values that equal each value."""
    order = np.argsort(group, kind="stable")
    in_order = group[order]
    first = np.searchsorted(in_order, in_order, side="left")
    earlier = np.empty(len(group), dtype=np.int64)
    earlier[order] = np.arange(len(group)) - first
    return earlier


def picture_index(rows: Ints, numbers: Ints, row: Ints, number: Ints) -> Ints:
    """The index of each (row, number) among sorted pairs; -1 where it is missing."""
    if not len(rows):
        return np.full(len(row), -1)
    width = 1 + max(int(numbers.max()), int(number.max(initial=0)))
    keys, keys_of_both = rows * width + numbers, row * width + number
    index = np.minimum(np.searchsorted(keys, keys_of_both), len(keys) - 1)
    return np.where(keys[index] == keys_of_both, index, -1)
