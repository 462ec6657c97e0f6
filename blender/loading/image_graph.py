"""The graph of a step's pictures from the rows that hold them to the nodes that encode them.

    images = ImageGraph(llm, encoder_tree, ("n_patches",))
    images.distribute("WORLD")
    images.cost(encoder)
    images.balance("greedybinpacking", bins=4, level="intra")
    llm.join(images)

An encoder is parallel in another way than its backbone, so its graph has a tree of its own (MegaScale-Data,
sections 4.2 and 4.3). Levels of balance:

    intra           a picture is encoded in the microbatch of its row, by any node
    inter           over the step: nodes get equal sums, and encode their pictures in the step's order
    interleaved     over the step: nodes get equal sums in each of the encoder's microbatches

The last two need a trainer that encodes the step's pictures before its backbone begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.bin_order import Barrier
from blender.loading.costs import Costs, sums
from blender.loading.draw import GraphStates
from blender.loading.figures import duration
from blender.loading.graph import DGraph
from blender.loading.image_plan import ImagePlan, StepImages, shares
from blender.loading.placement import Balance, Grid, LevelName, Placement
from blender.loading.tree import ClientPlaceTree

Ints = npt.NDArray[np.int64]


class ImageGraph(DGraph):
    """The pictures of a graph's rows on their way to the nodes of an encoder."""

    noun, place_noun = "picture", "node"

    def __init__(self, rows: DGraph, tree: ClientPlaceTree, names: Sequence[str]) -> None:
        """The pictures of the rows of a balanced graph, with facts of these names.

        Raises InvalidRequest for a step without pictures, for unknown facts, and before `balance`.
        """
        if rows.step.images is None:
            raise InvalidRequest(
                f"Step {rows.step.offset:,} knows no pictures. Give the spec `images`, which says how the "
                "model takes them."
            )
        rows.require_placed()
        self.rows, self.images = rows, rows.step.images
        super().__init__(rows.step, tree, names)
        self.stages = 1  # an encoder has no stages

    def __len__(self) -> int:
        return len(self.images)

    def balance(
        self,
        method: str,
        *,
        bins: int,
        level: LevelName = "intra",
        barrier: Barrier = "microbatch",
        equal_counts: bool = False,
        reorder: bool = True,
        limit: int | None = None,
    ) -> None:
        """Give each picture a node and one of the encoder's `bins` microbatches.

        Where pictures as given, as many on each node, are faster at the barrier, they stay; without
        `reorder` nothing is compared. Raises InvalidRequest as for rows, and for `intra` with other `bins`
        than the rows have, or with groups.
        """
        if level != "intra":
            super().balance(
                method,
                bins=bins,
                level=level,
                barrier=barrier,
                equal_counts=equal_counts,
                reorder=reorder,
                limit=limit,
            )
            return
        grid, limit = self._grid(bins, barrier, limit, equal_counts=equal_counts)
        if bins != self.rows.bins or self.group_size != self.buckets:
            raise InvalidRequest(
                f"Pictures stay in the {self.rows.bins:,} microbatches of their rows and go to any node, and "
                f"{bins:,} were asked for in groups of {self.group_size:,} nodes. Give as many `bins` and no "
                "`group_size`, or use level `interleaved`."
            )
        microbatch = self.rows.bin[self.images.row]
        memory = None if limit is None else self.memory
        across = Grid(bins, self.buckets)  # a bin of it is a node
        within = Balance(across, method, self.costs, memory, limit, equal_counts, barrier)
        node = within.place(microbatch, "intra", reorder=False).bin
        if reorder:
            node = self._in_turn(node, microbatch, grid)
        if reorder and limit is None:
            as_given = shares(microbatch, self.rows.bucket[self.images.row], self.buckets)
            if self._time(as_given, microbatch, grid, barrier) < self._time(node, microbatch, grid, barrier):
                node = as_given
        self._place(Placement(node, microbatch), grid, barrier, equal_counts=equal_counts)
        self._to("balanced", f"balance({method})")

    def image_plan(self, bucket: Ints, bin: Ints) -> ImagePlan:
        """The places of the step's pictures, for all of its rows in these microbatches.

        Raises InvalidRequest for a picture of a row that the graph does not have.
        """
        images = self.step.whole.images
        assert images is not None
        own = np.isin(images.row, self.step.numbers)
        node, microbatch = (np.full(len(images), -1, dtype=np.int64) for _ in range(2))
        costs = np.zeros(len(images), dtype=np.uint64)
        node[own], microbatch[own], costs[own] = self.bucket, self.bin, self.costs
        return ImagePlan(
            images,
            node,
            microbatch,
            costs,
            self.buckets,
            self.bins,
            bucket[images.row],
            bin[images.row],
            self.tree.nodes(self.axis),
        )

    def drawn_states(self) -> GraphStates:
        """The states of this graph, for a picture of it."""
        return GraphStates("pictures", len(self), tuple(self.edges))

    def join_to(self, rows: DGraph) -> None:
        """Add the pictures to the plan of their rows; raises InvalidRequest for other rows, and twice."""
        if rows is not self.rows:
            raise InvalidRequest(
                "Pictures were balanced for another graph of rows. Join them with the graph that "
                "`ImageGraph` got."
            )
        if rows.pictures is not None:
            raise InvalidRequest(
                f"The pictures of step {self.step.offset:,} are planned twice. Join one graph of them."
            )
        rows.pictures = self

    def _chosen(self, names: Sequence[str]) -> dict[str, Costs]:
        return _choose(self.images, names)

    def _in_turn(self, node: Ints, microbatch: Ints, grid: Grid) -> Ints:
        """The nodes exchanged within each microbatch, so that they have like sums over the step, too."""
        loads = sums(self.costs, node * grid.bins + microbatch, grid.size).reshape(grid.buckets, grid.bins)
        new_node, so_far = np.empty_like(loads, dtype=np.int64), np.zeros(grid.buckets, dtype=np.uint64)
        for bin in range(grid.bins):
            by_load = np.argsort(np.iinfo(np.uint64).max - loads[:, bin], kind="stable")
            by_sum = np.argsort(so_far, kind="stable")
            new_node[by_load, bin] = by_sum  # the costliest pictures to the node with the least so far
            so_far[by_sum] += loads[by_load, bin]
        return new_node[node, microbatch]

    def _time(self, node: Ints, microbatch: Ints, grid: Grid, barrier: Barrier) -> float:
        loads = sums(self.costs, node * grid.bins + microbatch, grid.size)
        return duration(loads.reshape(grid.buckets, grid.bins), barrier)

    def _name_of(self, number: int) -> str:
        row = int(self.step.numbers[self.images.row[number]])
        return f"Picture {self.images.number[number]} of row {row:,} of step {self.step.offset:,}"


def _choose(images: StepImages, names: Sequence[str]) -> dict[str, Costs]:
    unknown = [name for name in names if name not in images.facts]
    if unknown:
        raise InvalidRequest(
            f"Pictures have no fact `{unknown[0]}`. Choose among "
            f"{', '.join(f'`{name}`' for name in images.facts)}."
        )
    return {name: images.facts[name] for name in names}
