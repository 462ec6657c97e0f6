"""Long samples on many context parallel ranks, short ones on few: the graph of a plan with groups of ranks.

    graph = WidthGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("CP")
    graph.cost(model, memory=tokens)
    graph.balance("greedybinpacking", bins=4, equal_counts=False, limit=8_192)
    graph.plan().groups.widths                  # (4, 2, 1, 1): ranks of each bucket at this step

`distribute("CP")` makes all DP x CP ranks consumers (MegaScale-Data, section 4.2). A bucket has 2^k of them,
neighbors within a node of the level DP, which cut its rows into as many pieces. Who reads with whom belongs
to the plan of each step.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading import bin_order
from blender.loading.balance import NoRoom
from blender.loading.bin_order import Barrier
from blender.loading.costs import sums
from blender.loading.figures import duration
from blender.loading.graph import DGraph
from blender.loading.placement import Grid, LevelName, Placement
from blender.loading.plan import RankGroups
from blender.loading.tree import Consumer
from blender.spec.whole_number import whole_number

Ints = npt.NDArray[np.int64]


WORTH_CUTTING = 0.05  # the gain in time for which rows are cut for more ranks, which then exchange keys


@dataclass(frozen=True)
class _Groups:
    """Groups of ranks, the bucket and bin of each row, the order of bins, and the time of the step."""

    groups: RankGroups
    bucket: Ints
    bin: Ints
    new_bin: Ints
    duration: float


class WidthGraph(DGraph):
    """The rows of a step on their way to groups of context parallel ranks."""

    def balance(
        self,
        method: str,
        *,
        bins: int,
        level: LevelName = "both",
        barrier: Barrier = "microbatch",
        equal_counts: bool = False,
        reorder: bool = True,
        limit: int | None = None,
    ) -> None:
        """Group the ranks by the widths that the rows need, and give each group rows of like cost a rank.

        A row gets the fewest ranks, a power of two, on which its share is at most the mean microbatch and
        at most `limit`, the most memory of a rank in a microbatch; a wider group with room takes it, too.
        Where rows do not fit so, or the step is faster by WORTH_CUTTING, the narrowest rows are cut further.
        Groups may have microbatches without rows.

        Raises InvalidRequest for equal counts, for another level, before `distribute("CP")`, and for rows
        that do not fit on all ranks of their node.
        """
        if method != "greedybinpacking":
            raise InvalidRequest(f"Groups of ranks are not filled by `{method}`. Use `greedybinpacking`.")
        if self.axis != "CP" or level not in ("both", "interleaved") or equal_counts:
            raise InvalidRequest(
                "Groups of ranks get different numbers of rows, over all microbatches. Call "
                '`distribute("CP")`, balance at level `interleaved`, and set `equal_counts=False`.'
            )
        cp = self.tree.mesh.cp
        most, ranks = cp & -cp, len(self.tree.nodes("CP"))  # the largest power of two that divides cp
        if ranks != self.tree.mesh.dp * cp:
            raise InvalidRequest(
                f"The tree has {ranks:,} nodes at level `CP`, and mesh {self.tree.mesh} has "
                f"{self.tree.mesh.dp * cp:,} data and context parallel ranks. Use the tree of the mesh."
            )
        grid, _ = self._grid(bins, barrier, None, equal_counts=False)
        limit = None if limit is None else whole_number(limit, "limit", least=1)
        widths = self._least_widths(ranks * bins, most, limit)
        best: _Groups | None = None
        least = 1
        while least <= most:
            try:
                groups = self._group(np.maximum(widths, least), ranks, grid, barrier, limit)
            except NoRoom as refusal:
                if best is None and least == most:
                    raise self.without_room(refusal.row, limit, equal_counts=False) from refusal
            else:
                if best is None or groups.duration * (1 + WORTH_CUTTING) < best.duration:
                    best = groups
            least *= 2
        assert best is not None
        self.groups = best.groups
        bin = best.new_bin[best.bucket, best.bin] if reorder else best.bin
        self._place(Placement(best.bucket, bin), grid, barrier, equal_counts=False)
        self._to("balanced", f"balance({method})")

    def _least_widths(self, n_bins: int, most: int, limit: int | None) -> Ints:
        """The ranks that each row needs, at most `most`; raises InvalidRequest for one that does not fit."""
        mean = max(1, -(-int(self.costs.sum()) // n_bins))
        need = -(-self.costs.astype(np.int64) // mean)
        need = np.minimum(need, most)
        if limit is not None:
            if self.memory is None:
                raise InvalidRequest(
                    "A limit bounds memory, and no memory was given. Pass `memory=` to `cost`."
                )
            for_memory = -(-self.memory.astype(np.int64) // limit)
            if len(for_memory) and int(for_memory.max()) > most:
                row = int(for_memory.argmax())
                raise InvalidRequest(
                    f"{self._name_of(row)} takes {self.memory[row]:,}, and {most} ranks may hold {limit:,} "
                    "each. Raise the limit, or use more context parallel ranks."
                )
            need = np.maximum(need, for_memory)
        width = np.ones(len(need), dtype=np.int64)
        while (width < need).any():
            width = np.where(width < need, width * 2, width)
        return width

    def _group(self, widths: Ints, ranks: int, grid: Grid, barrier: Barrier, limit: int | None) -> _Groups:
        """The places of rows of these widths; raises NoRoom where they do not fit."""
        groups = RankGroups(self._groups_of(widths, ranks, grid.bins, limit), self.tree.mesh.cp)
        bucket, bin = np.divmod(self._filled(widths, groups.widths, grid.bins, limit), grid.bins)
        n_buckets = len(groups.widths)
        loads = sums(self.costs, bucket * grid.bins + bin, n_buckets * grid.bins)
        of_ranks = groups.per_rank(loads.reshape(-1, grid.bins), repeat=False)
        new_bin = bin_order.ordered(of_ranks, barrier, self.stages)
        time = duration(bin_order.moved(of_ranks, new_bin), barrier, self.stages)
        return _Groups(groups, bucket, bin, new_bin, time)

    def _filled(self, widths: Ints, groups: Sequence[int], bins: int, limit: int | None) -> Ints:
        """The bin of each row, numbered over all groups: the least loaded one that is wide enough.

        The widest rows choose first, among them the costliest. Raises NoRoom.
        """
        places = np.zeros(len(self), dtype=np.int64)
        costs = self.costs.tolist()
        memory = [0] * len(costs) if self.memory is None else self.memory.tolist()
        of_bin = [0] * (len(groups) * bins)
        heap: list[tuple[int, int]] = []  # a rank's load, times the first width; the bin
        group = 0
        for row in np.lexsort((np.iinfo(np.uint64).max - self.costs, -widths)).tolist():
            while group < len(groups) and groups[group] >= widths[row]:
                for bin in range(group * bins, (group + 1) * bins):
                    heapq.heappush(heap, (0, bin))
                group += 1
            full = []
            while heap:
                load, bin = heapq.heappop(heap)
                if limit is None or of_bin[bin] + memory[row] <= limit * groups[bin // bins]:
                    break
                full.append((load, bin))
            else:
                raise NoRoom("No bin has room.", row)
            places[row] = bin
            of_bin[bin] += memory[row]
            heapq.heappush(heap, (load + costs[row] * groups[0] // groups[bin // bins], bin))
            for entry in full:
                heapq.heappush(heap, entry)
        return places

    def _groups_of(self, widths: Ints, ranks: int, bins: int, limit: int | None) -> tuple[int, ...]:
        """The widths of groups, widest first and of all ranks together: each width by its share of costs."""
        total, free = max(1, int(self.costs.sum())), ranks
        of_groups: list[int] = []
        for width in np.unique(widths)[::-1].tolist():
            rows = widths == width
            n_groups = max(1, round(int(self.costs[rows].sum()) * ranks / (total * width)))
            n_groups = min(n_groups, int(rows.sum()))
            if limit is not None and self.memory is not None:
                n_groups = max(n_groups, -(-int(self.memory[rows].sum()) // (limit * width * bins)))
            n_groups = min(free // width, n_groups)
            of_groups += [width] * n_groups
            free -= n_groups * width
        narrowest = of_groups[-1] if of_groups else 1
        while free:  # ranks that no row needs, in groups as narrow as the last ones
            of_groups.append(min(narrowest, free & -free))
            free -= of_groups[-1]
        return tuple(of_groups)

    def _readers(self) -> tuple[Consumer, ...]:
        """The ranks that read, each with its piece of the rows of its group."""
        consumers = self.tree.consumers("CP", self._broadcasts)
        if self.groups is None:
            return consumers
        widths = self.groups.widths
        bucket = np.repeat(np.arange(len(widths)), widths)
        piece = np.arange(len(bucket)) - np.repeat(np.cumsum(widths) - widths, widths)
        return tuple(
            replace(
                consumer,
                bucket=int(bucket[consumer.bucket]),
                piece=int(piece[consumer.bucket]),
                pieces=widths[bucket[consumer.bucket]],
            )
            for consumer in consumers
        )
