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
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading.balance import NoRoom
from blender.loading.bin_order import BARRIERS, Barrier
from blender.loading.columns import StepColumns
from blender.loading.costs import MOST_TOTAL, CostFunction, Costs, total_cost
from blender.loading.draw import DrawingLanguage, drawing
from blender.loading.placement import Balance, Grid, Moves, Placement, as_given, sums_as_given
from blender.loading.plan import Plan
from blender.loading.tree import LEVELS, Broadcast, ClientPlaceTree, Level
from blender.records import Schedule
from blender.spec.schedule import blend_schedule
from blender.spec.whole_number import whole_number
from factory.errors import FactoryError, first_line

Ints = npt.NDArray[np.int64]


class DGraph:
    """The rows of a step on their way to the ranks of a mesh."""

    def __init__(self, step: StepColumns, tree: ClientPlaceTree, names: Sequence[str]) -> None:
        self.step = step
        self.tree = tree
        self.facts = step.choose(names)
        self.states = ["loaded"]
        """The states that the rows went through."""
        self.edges: list[tuple[str, str, str]] = []
        """From one state to the next, by a primitive."""
        self.axis: Level = "DP"
        self.group_size = len(tree.nodes("DP"))
        self.barrier: Barrier = "microbatch"
        self.bins = 1
        self.costs: Costs = np.ones(len(step), dtype=np.uint64)
        self.memory: Costs | None = None
        self.bucket: Ints = np.zeros(len(step), dtype=np.int64)
        self.bin: Ints = np.zeros(len(step), dtype=np.int64)
        self._broadcasts: list[Broadcast] = []
        self._equal_counts = True

    @classmethod
    def of(cls, step: StepColumns, tree: ClientPlaceTree, names: Sequence[str]) -> Self:
        """A graph over the facts of these names; several graphs may share one step."""
        return cls(step, tree, names)

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return len(self.tree.nodes(self.axis))

    def mix(self, schedule: Schedule | None) -> None:
        """Sample rows by the blend's mixture, None, or by a schedule that the blend follows.

        Raises InvalidBlend for a schedule that names a source the blend lacks, and InvalidRequest for one
        that it does not follow: `LoadingSpec.scheduled` makes the blend that does.
        """
        if schedule is not None:
            self._require_followed(schedule)
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
        if "balanced" in self.states or "filled" in self.states:
            raise InvalidRequest(
                "The rows of the graph are in microbatches already. Call `distribute` before `balance`, or "
                "make another graph of the step."
            )
        self.axis = axis
        self.group_size = min(group_size or self.buckets, self.buckets)
        self.bucket = np.arange(len(self.step)) * self.buckets // max(1, len(self.step))
        self._to("distributed", f"distribute({axis})")

    def cost(self, function: CostFunction, memory: CostFunction | None = None) -> None:
        """The cost of each row, and its memory for `limit`.

        Raises InvalidRequest for other than whole numbers, for a sum of 2^63 or more, and for a function that
        fails, which is the cause of the error.
        """
        costs = self._whole_numbers(function)
        self.memory = None if memory is None else self._whole_numbers(memory)
        self.costs = costs
        self._to("measured", "cost")

    def balance(
        self,
        method: str,
        *,
        bins: int,
        level: Moves = "inter",
        barrier: Barrier = "microbatch",
        equal_counts: bool = True,
        reorder: bool = True,
        limit: int | None = None,
    ) -> None:
        """Put the rows of each bucket in `bins` microbatches of like cost.

        `inter` moves rows between buckets and fills microbatches in the blend's order, `intra` moves rows
        between the microbatches of a bucket, `both` does both at once. `reorder` puts the
        microbatches of a bucket in the order that is fastest at `barrier`; without it they stand in the
        order of the method. `limit` is the most memory of a microbatch; its rows keep the blend's order.

        Where the rows as given are faster at the barrier, they stay, also where they keep a limit below which
        the method cannot fit them; without `reorder` nothing is compared.

        Raises InvalidRequest for an unknown method, level or barrier, for rows that do not fill all bins
        equally with `equal_counts`, and for rows above the limit; the graph is then as before.
        """
        if level not in ("inter", "intra", "both"):
            raise InvalidRequest(f"`{level}` is not a level of balance. Use inter, intra or both.")
        grid, limit = self._grid(bins, barrier, limit, equal_counts=equal_counts)
        memory = None if limit is None else self.memory
        rows = Balance(grid, method, self.costs, memory, limit, equal_counts, barrier)
        try:
            placement = rows.place(self.bucket, level, reorder=reorder)
        except NoRoom as refusal:
            raise self._without_room(refusal.row, limit, equal_counts=equal_counts) from refusal
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
        self._place(as_given(len(self.step), grid), grid, barrier, equal_counts=equal_counts)
        self._to("filled", "fill")

    def broadcast_at(self, *dims: str) -> None:
        """Let the first rank of an axis read for the others, which get its rows by a broadcast.

        `tp/4` is for groups of four neighbors; without a dimension every rank reads. Raises InvalidRequest.
        """
        self._broadcasts += [Broadcast.parse(dim) for dim in dims]

    def plan(self) -> Plan:
        """The plan of the step; raises InvalidRequest before `distribute`."""
        self._require_distributed()
        return Plan(
            self.step,
            self.bucket,
            self.bin,
            self.costs,
            self.buckets,
            self.bins,
            self.tree.consumers(self.axis, self._broadcasts),
            self.tree.mesh.pp,
            self.barrier,
            equal_counts=self._equal_counts,
        )

    def draw(self, language: DrawingLanguage = "mermaid") -> str:
        """A picture of the graph: sources, buckets with their bins and costs, and the ranks that read."""
        return drawing(self.plan(), language)

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
        grid = Grid(self.buckets, bins, self.group_size, self.tree.mesh.pp)
        if equal_counts and len(self.step) % grid.size:
            raise InvalidRequest(
                f"Step {self.step.offset:,} has {len(self.step):,} rows, which {self.buckets:,} buckets of "
                f"{bins:,} microbatches do not share equally. Use a mesh and microbatches that divide it, or "
                "other weights."
            )
        self._require_smaller(limit)
        return grid, limit

    def _whole_numbers(self, function: CostFunction) -> Costs:
        values = self._values(function)
        if values.shape != (len(self.step),) or not np.issubdtype(values.dtype, np.integer):
            raise InvalidRequest(
                f"A cost function returned {values.dtype} of shape {values.shape} for {len(self.step):,} "
                "rows. Return a whole number for each row: sums of floats differ between machines."
            )
        if len(values) and int(values.min()) < 0:
            raise InvalidRequest(f"A cost function returned {values.min()}. Costs are 0 or more.")
        costs = values.astype(np.uint64)
        if total_cost(costs) >= MOST_TOTAL:
            raise InvalidRequest(
                f"The costs of step {self.step.offset:,} sum to {total_cost(costs):.2g}, and are exact below "
                "2^63 = 9.2e18. Divide them by a common factor, or give smaller sizes of the model."
            )
        return costs

    def _values(self, function: CostFunction) -> npt.NDArray[Any]:
        try:
            return np.asarray(function(self.facts))
        except FactoryError:
            raise
        except Exception as error:
            fact = error.args[0] if isinstance(error, KeyError) and error.args else None
            if isinstance(fact, str) and fact not in self.facts:
                raise InvalidRequest(
                    f"The cost function reads the fact `{fact}`, and the graph has "
                    f"{', '.join(f'`{name}`' for name in self.facts)}. Name it in `DGraph.of`."
                ) from error
            raise InvalidRequest(
                f"The cost function failed on step {self.step.offset:,} "
                f"({type(error).__name__}: {first_line(error)}). Correct it."
            ) from error

    def _require_followed(self, schedule: Schedule) -> None:
        if not isinstance(schedule, Schedule):
            raise InvalidRequest(
                f"`mix` got a {type(schedule).__name__}. Pass a `Schedule`, or None for the blend's mixture."
            )
        if blend_schedule(schedule, self.step.sources) != self.step.schedule:
            raise InvalidRequest(
                f"Blend {self.step.blend} does not follow this schedule. A plan changes no blend: make the "
                "spec with `LoadingSpec.scheduled`, which updates it."
            )

    def _require_distributed(self) -> None:
        if "distributed" not in self.states:
            raise InvalidRequest("The rows of the graph have no buckets yet. Call `distribute` first.")

    def _require_smaller(self, limit: int | None) -> None:
        """Raise InvalidRequest for a row that alone is above the limit."""
        if limit is None:
            return
        if self.memory is None:
            raise InvalidRequest("A limit bounds memory, and no memory was given. Pass `memory=` to `cost`.")
        largest = int(self.memory.argmax()) if len(self.memory) else 0
        if len(self.memory) and int(self.memory[largest]) > limit:
            raise InvalidRequest(
                f"{self._described(largest)} takes {self.memory[largest]:,}, and a microbatch may hold "
                f"{limit:,}. Raise the limit, or pack into shorter rows."
            )

    def _without_room(self, row: int, limit: int | None, *, equal_counts: bool) -> InvalidRequest:
        assert self.memory is not None
        ragged = ", or allow different numbers of rows (`equal_counts=False`, `--ragged`)"
        return InvalidRequest(
            f"{self._described(row)} takes {self.memory[row]:,}, and no microbatch of its group has room for "
            f"it below the limit of {limit:,}. Raise `limit`, plan more `microbatches`"
            f"{ragged if equal_counts else ''}."
        )

    def _described(self, row: int) -> str:
        """A row by its place in the step and in its source, as the begin of a sentence."""
        source = self.step.sources[self.step.source[row]]
        return (
            f"Row {row:,} of step {self.step.offset:,} (ordinal {self.step.ordinal[row]:,} of source "
            f"`{source}`)"
        )
