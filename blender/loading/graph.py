"""The graph of a step from its sources to the ranks that read it, built by primitives.

    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.mix(None)
    graph.distribute("DP")
    graph.cost(model, memory=tokens)
    graph.balance("greedybinpacking", bins=8, barrier="microbatch")
    graph.broadcast_at("TP")
    plan = graph.plan()

The primitives have the names of MegaScale-Data, section 4.2. A graph is columns, never an object a row: rows
carry a source, a bucket, a bin and a cost, and all rows pass through the same states.

    loaded -mix-> sampled -distribute-> distributed -cost-> measured -balance-> balanced

A graph may take some rows of a step (`StepColumns.only`), and its plan is joined with the other graphs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.balance import NoRoom
from blender.loading.bin_order import BARRIERS, Barrier
from blender.loading.columns import StepColumns
from blender.loading.cost_values import cost_values
from blender.loading.costs import CostFunction, Costs
from blender.loading.draw import DrawingLanguage, GraphStates, drawing
from blender.loading.image_plan import ImagePlan
from blender.loading.limits import require_smaller, without_room
from blender.loading.placement import (
    LEVEL_NAMES,
    Balance,
    Grid,
    LevelName,
    Placement,
    as_given,
    own_places,
    sums_as_given,
)
from blender.loading.plan import Plan, RankGroups
from blender.loading.tree import LEVELS, Broadcast, ClientPlaceTree, Consumer, Level
from blender.records import Schedule
from blender.spec.whole_number import whole_number

Ints = npt.NDArray[np.int64]


class PicturePlaces(Protocol):
    """The graph of the pictures of rows (`blender.loading.image_graph`)."""

    def image_plan(self, bucket: Ints, bin: Ints) -> ImagePlan:
        """The places of the pictures, for rows in these buckets and microbatches."""

    def drawn_states(self) -> GraphStates:
        """The states of the graph."""


class DGraph:
    """The rows of a step on their way to the ranks of a mesh."""

    noun, place_noun = "row", "bucket"
    """An item and its place; of a graph of pictures (`blender.loading.image_graph`) others."""

    def __init__(self, step: StepColumns, tree: ClientPlaceTree, names: Sequence[str]) -> None:
        self.step = step
        self.tree = tree
        self.facts = self._chosen(names)
        self.states = ["loaded"]
        """The states that the rows went through."""
        self.edges: list[tuple[str, str, str]] = []
        """From one state to the next, by a primitive."""
        self.axis: Level = "DP"
        self.group_size = len(tree.nodes("DP"))
        self.barrier: Barrier = "microbatch"
        self.bins = 1
        self.stages = tree.mesh.pp
        self.costs: Costs = np.ones(len(self), dtype=np.uint64)
        self.memory: Costs | None = None
        self.bucket: Ints = np.zeros(len(self), dtype=np.int64)
        self.bin: Ints = np.zeros(len(self), dtype=np.int64)
        self.others: list[DGraph] = []
        """Joined graphs of other rows of the step."""
        self.groups: RankGroups | None = None
        self.pictures: PicturePlaces | None = None
        """The joined graph of the rows' pictures."""
        self._broadcasts: list[Broadcast] = []
        self._equal_counts = True

    @classmethod
    def of(cls, step: StepColumns, tree: ClientPlaceTree, names: Sequence[str]) -> Self:
        """A graph over the facts of these names; several graphs may share one step."""
        return cls(step, tree, names)

    def __len__(self) -> int:
        return len(self.step)

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.tree.nodes(self.axis)) if self.groups is None else len(self.groups.widths)

    def mix(self, schedule: Schedule | None) -> None:
        """Sample rows by the blend's mixture, None, or by a schedule that the blend follows.

        Raises InvalidBlend for a schedule that names a source the blend lacks, and InvalidRequest for one
        that it does not follow: `LoadingSpec.scheduled` makes the blend that does.
        """
        if schedule is not None:
            self.step.require_followed(schedule)
        self._to("sampled", "mix")

    def distribute(self, axis: Level, group_size: int | None = None) -> None:
        """Give each node of a level a bucket.

        `group_size` neighboring buckets are balanced with the other groups as if they were one bucket, and
        then with each other; None balances all buckets at once.

        Raises InvalidRequest for another level, for a group without buckets, and after `balance`.
        """
        if axis not in LEVELS:
            raise InvalidRequest(f"`{axis}` is no level of a mesh. Distribute over {', '.join(LEVELS)}.")
        if group_size is not None:
            group_size = whole_number(group_size, "group_size", least=1)
        if self._is_placed:
            raise InvalidRequest(
                f"The {self.noun}s of the graph are in microbatches already. Call `distribute` before "
                "`balance`, or make another graph of the step."
            )
        self.axis = axis
        self.group_size = min(group_size or self.buckets, self.buckets)
        self.bucket = np.arange(len(self)) * self.buckets // max(1, len(self))
        self._to("distributed", f"distribute({axis})")

    def cost(self, function: CostFunction | None, memory: CostFunction | None = None) -> None:
        """The cost of each row, and its memory for `limit`.

        Raises InvalidRequest for None, for other than whole numbers, for a sum of 2^63 or more, and for a
        function that fails, which is the cause of the error.
        """
        place = f"step {self.step.offset:,}"
        costs = cost_values(function, self.facts, len(self), self.noun, place)
        self.memory = None if memory is None else cost_values(memory, self.facts, len(self), self.noun, place)
        self.costs = costs
        self._to("measured", "cost")

    def balance(
        self,
        method: str,
        *,
        bins: int,
        level: LevelName = "inter",
        barrier: Barrier = "microbatch",
        equal_counts: bool = True,
        reorder: bool = True,
        limit: int | None = None,
    ) -> None:
        """Put the rows of each bucket in `bins` microbatches of like cost.

        `inter` moves rows between buckets and fills microbatches in the blend's order, `intra` moves rows
        between the microbatches of a bucket, `interleaved` or `both` does both at once. `reorder` puts the
        microbatches of a bucket in the order that is fastest at `barrier`; without it they stand in the
        order of the method. `limit` is the most memory of a microbatch; its rows keep the blend's order.

        Where the rows as given are faster at the barrier, they stay, also where they keep a limit below which
        the method cannot fit them; without `reorder` nothing is compared.

        Raises InvalidRequest for an unknown method, level or barrier, for rows that do not fill all bins
        equally with `equal_counts`, and for rows above the limit; the graph is then as before.
        """
        if level not in LEVEL_NAMES:
            raise InvalidRequest(f"`{level}` is not a level of balance. Use {', '.join(LEVEL_NAMES)}.")
        grid, limit = self._grid(bins, barrier, limit, equal_counts=equal_counts)
        memory = None if limit is None else self.memory
        rows = Balance(grid, method, self.costs, memory, limit, equal_counts, barrier)
        try:
            placement = rows.place(self.bucket, LEVEL_NAMES[level], reorder=reorder)
        except NoRoom as refusal:
            raise self.without_room(refusal.row, limit, equal_counts=equal_counts) from refusal
        self._place(placement, grid, barrier, equal_counts=equal_counts)
        self._to("balanced", f"balance({method})")

    def fill(
        self,
        *,
        bins: int,
        barrier: Barrier = "microbatch",
        equal_counts: bool = True,
        limit: int | None = None,
    ) -> None:
        """Fill `bins` microbatches of each bucket in the blend's order, without balance.

        Raises InvalidRequest as `balance` does.
        """
        grid, limit = self._grid(bins, barrier, limit, equal_counts=equal_counts)
        if limit is not None and self.memory is not None:
            most = int(sums_as_given(self.memory, grid.buckets, grid.bins).max())
            if most > limit:
                raise InvalidRequest(
                    f"The rows of step {self.step.offset:,} as given fill a microbatch with {most:,}, and it "
                    f"may hold {limit:,}. Balance them (strategy `llm`), or raise the limit."
                )
        self._place(as_given(len(self), grid), grid, barrier, equal_counts=equal_counts)
        self._to("filled", "fill")

    def place(
        self,
        bucket: npt.ArrayLike,
        bin: npt.ArrayLike,
        *,
        bins: int,
        barrier: Barrier = "microbatch",
        equal_counts: bool = True,
    ) -> None:
        """Put each row in a bucket and a microbatch of your own; shapes [rows]. Raises InvalidRequest."""
        grid, _ = self._grid(bins, barrier, None, equal_counts=False)
        own = partial(own_places, n=len(self), name_of=self._name_of, noun=self.noun)
        placement = Placement(
            own(bucket, extent=grid.buckets, place=self.place_noun),
            own(bin, extent=grid.bins, place="microbatch"),
        )
        self._place(placement, grid, barrier, equal_counts=equal_counts)
        self._to("placed", "place")

    def broadcast_at(self, *dims: str) -> None:
        """Let the first rank of an axis read for the others, which get its rows by a broadcast.

        `tp/4` is for groups of four neighbors; without a dimension every rank reads. Raises InvalidRequest.
        """
        self._broadcasts += [Broadcast.parse(dim) for dim in dims]

    def join(self, graph: DGraph) -> None:
        """Plan the pictures of these rows, or other rows of the step, together with them.

        Raises InvalidRequest for a graph that was not distributed and balanced as this one: other rows have
        the same buckets and microbatches.
        """
        graph.require_placed()
        graph.join_to(self)
        graph.edges.append((graph.states[-1], f"{self.noun}s {self.states[-1]}", "join"))

    def plan(self) -> Plan:
        """The plan of the step; raises InvalidRequest before `distribute`, and unless all rows are in it."""
        self._require_distributed()
        step, graphs = self.step.whole, [self, *self.others]
        bucket, bin = np.zeros(len(step), dtype=np.int64), np.zeros(len(step), dtype=np.int64)
        costs, counts = np.zeros(len(step), dtype=np.uint64), np.zeros(len(step), dtype=np.int64)
        for graph in graphs:
            rows = graph.step.numbers
            bucket[rows], bin[rows], costs[rows] = graph.bucket, graph.bin, graph.costs
            counts[rows] += 1
        step.require_each_once(counts)
        images = None if self.pictures is None else self.pictures.image_plan(bucket, bin)
        return Plan(
            step,
            bucket,
            bin,
            costs,
            self.buckets,
            self.bins,
            self._readers(),
            self.stages,
            self.barrier,
            images=images,
            groups=self.groups,
            equal_counts=all(graph._equal_counts for graph in graphs),
        )

    def draw(self, language: DrawingLanguage = "mermaid") -> str:
        """A picture of the graph: states and edges, buckets with their bins and costs, ranks that read."""
        lanes = [graph.drawn_states() for graph in [self, *self.others]]
        lanes += [] if self.pictures is None else [self.pictures.drawn_states()]
        return drawing(self.plan(), language, lanes)

    def drawn_states(self) -> GraphStates:
        """The states of this graph, for a picture of it."""
        return GraphStates("rows", len(self), tuple(self.edges), len(self.step.whole) - len(self.step))

    def require_placed(self) -> None:
        """Raise InvalidRequest before `balance` and `fill`."""
        if not self._is_placed:
            raise InvalidRequest(
                f"The {self.noun}s of a graph have no microbatches yet. Call `balance` before it is joined."
            )

    def join_to(self, rows: DGraph) -> None:
        """Add these rows to the plan of others; raises InvalidRequest unless both can have one plan."""
        if rows.step.whole is not self.step.whole:
            raise InvalidRequest("Graphs of two steps are joined. Make both of one step.")
        if (rows.buckets, rows.bins) != (self.buckets, self.bins):
            raise InvalidRequest(
                f"Graphs with {rows.buckets:,} buckets of {rows.bins:,} microbatches and with "
                f"{self.buckets:,} of {self.bins:,} are joined. Distribute and balance both alike."
            )
        rows.others.append(self)

    def _to(self, state: str, primitive: str) -> None:
        self.edges.append((self.states[-1], state, primitive))
        self.states.append(state)

    def _place(self, placement: Placement, grid: Grid, barrier: Barrier, *, equal_counts: bool) -> None:
        self.bucket, self.bin, self.bins = placement.bucket, placement.bin, grid.bins
        self.barrier, self._equal_counts = barrier, equal_counts

    def _grid(
        self, bins: int, barrier: Barrier, limit: int | None, *, equal_counts: bool
    ) -> tuple[Grid, int | None]:
        """The grid of bins and the limit; raises InvalidRequest if no plan of these rows can have them."""
        if barrier not in BARRIERS:
            raise InvalidRequest(f"`{barrier}` is not a barrier. Use {', '.join(BARRIERS)}.")
        self._require_distributed()
        bins = whole_number(bins, "bins", least=1)
        limit = None if limit is None else whole_number(limit, "limit")
        grid = Grid(self.buckets, bins, self.group_size, self.stages)
        if equal_counts and len(self) % grid.size:
            raise InvalidRequest(
                f"Step {self.step.offset:,} has {len(self):,} {self.noun}s, which {self.buckets:,} buckets "
                f"of {bins:,} microbatches do not share equally. Use a mesh and microbatches that divide it, "
                "or other weights."
            )
        require_smaller(self.memory, limit, self._name_of)
        return grid, limit

    def _require_distributed(self) -> None:
        if "distributed" not in self.states:
            raise InvalidRequest(
                f"The {self.noun}s of the graph have no buckets yet. Call `distribute` first."
            )

    @property
    def _is_placed(self) -> bool:
        return not {"balanced", "filled", "placed"}.isdisjoint(self.states)

    def _readers(self) -> tuple[Consumer, ...]:
        return self.tree.consumers(self.axis, self._broadcasts)

    def _chosen(self, names: Sequence[str]) -> dict[str, Costs]:
        return self.step.choose(names)

    def without_room(self, number: int, limit: int | None, *, equal_counts: bool) -> InvalidRequest:
        """The refusal of a row for which no microbatch has room below the limit."""
        assert self.memory is not None
        return without_room(self._name_of(number), self.memory[number], limit or 0, equal_counts=equal_counts)

    def _name_of(self, number: int) -> str:
        return self.step.name_of(number)
