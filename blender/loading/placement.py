"""The bucket and the bin of each row of a step: as the blend gives its rows, or moved by a balancing method.

    grid = Grid(buckets=8, bins=4)
    as_given(1_024, grid).bucket                # array([0, 0, ...]): a share of the rows for each, in order
    Balance(grid, "greedybinpacking", costs).place(as_given(1_024, grid).bucket, "both")

A group of neighboring buckets is balanced with the other groups as if it were one bucket, and then its rows
among its buckets (MegaScale-Data, section 4.2). Rows as given replace a placement that is worse, or that
does not fit below a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from blender.errors import InvalidRequest
from blender.loading import bin_order
from blender.loading.balance import Method, NoRoom, OverLimit, RowGroups, balancer
from blender.loading.bin_order import Barrier
from blender.loading.costs import Costs, sums
from blender.loading.figures import duration
from blender.loading.raw_places import whole_numbers
from blender.spec.whole_number import MOST

Ints = npt.NDArray[np.int64]
Moves = Literal["inter", "intra", "both"]
LevelName = Literal["inter", "intra", "both", "interleaved"]
LEVEL_NAMES: dict[LevelName, Moves] = {
    "inter": "inter",
    "intra": "intra",
    "both": "both",
    "interleaved": "both",  # the name of MegaScale-Data
}

MOST_BINS = 1 << 24  # of a step
MOST_PASSES = 1 << 16  # forward passes of a pipeline, which is simulated in seconds


@dataclass(frozen=True)
class Grid:
    """The bins of a step: so many in each bucket, and the neighboring buckets that are balanced as one.

    Raises InvalidRequest for more bins, or more stages times bins, than a plan may have.
    """

    buckets: int
    bins: int
    group_size: int = 1
    stages: int = 1

    def __post_init__(self) -> None:
        if self.buckets * self.bins > MOST_BINS:
            raise InvalidRequest(
                f"{self.buckets:,} buckets of {self.bins:,} microbatches are more than {MOST_BINS:,} in a "
                "step. Use fewer microbatches, or a smaller mesh."
            )
        if self.stages > 1 and self.stages * self.bins > MOST_PASSES:
            raise InvalidRequest(
                f"{self.stages:,} stages with {self.bins:,} microbatches make {self.stages * self.bins:,} "
                f"passes, and a pipeline of at most {MOST_PASSES:,} is simulated. Use fewer of either."
            )

    @property
    def size(self) -> int:
        """The number of bins of all buckets."""
        return self.buckets * self.bins

    @property
    def last_group(self) -> int:
        """The buckets of a last group that has fewer than the others; 0 if all have as many."""
        return self.buckets % self.group_size


@dataclass(frozen=True)
class Placement:
    """The bucket and the bin of each row; shapes [n]."""

    bucket: Ints
    bin: Ints


def as_given(n_rows: int, grid: Grid) -> Placement:
    """Rows in the blend's order, a share for every bin."""
    place = np.repeat(np.arange(grid.size), np.diff(_ends_as_given(n_rows, grid.size), prepend=0))
    return Placement(*np.divmod(place, grid.bins))


def own_places(
    values: npt.ArrayLike, n: int, extent: int, name_of: Callable[[int], str], noun: str, place: str
) -> Ints:
    """`values` as the places of `n` items among `extent`; raises InvalidRequest unless each has one of them.

    `noun` is the word for an item, and `place` for its place; `name_of` gives the name of one item.
    """
    places = whole_numbers(place, values)
    if len(places) < n:
        raise InvalidRequest(
            f"{name_of(len(places))} has no {place}: {len(places):,} are given for {n:,} {noun}s. Plan each "
            f"{noun} once."
        )
    if len(places) > n:
        raise InvalidRequest(
            f"{len(places):,} {noun}s get a {place}, and the step has {n:,}, so that one is planned twice "
            f"or not of this step. Plan each {noun} once."
        )
    for number in np.flatnonzero((places < 0) | (places >= extent))[:1].tolist():
        raise InvalidRequest(
            f"{name_of(number)} is planned for {place} {places[number]:,}, and there are 0 to "
            f"{extent - 1:,}. Plan it for one of them."
        )
    return places


def sums_as_given(values: Costs, buckets: int, bins: int) -> Costs:
    """The sum of the values of each bin if rows are as given; shape [buckets, bins]."""
    before = np.concatenate([[np.uint64(0)], np.cumsum(values, dtype=np.uint64)])
    at_end = before[_ends_as_given(len(values), buckets * bins)]
    return np.diff(at_end, prepend=np.uint64(0)).reshape(buckets, bins)


def _ends_as_given(n_rows: int, n_bins: int) -> Ints:
    return -(-np.arange(1, n_bins + 1) * n_rows // n_bins)


@dataclass(frozen=True)
class Balance:
    """Rows of these costs in the bins of a grid, by a method."""

    grid: Grid
    name: str
    """The balancing method."""
    costs: Costs
    memory: Costs | None = None
    limit: int | None = None
    """The most memory of a bin."""
    equal_counts: bool = True
    barrier: Barrier = "microbatch"

    @cached_property
    def method(self) -> Method:
        """The method of the name; raises InvalidRequest."""
        return balancer(self.name)

    def place(self, bucket: Ints, level: Moves, *, reorder: bool = True) -> Placement:
        """The rows of each bucket moved between buckets, between the bins of a bucket, or both.

        With `reorder`, bins stand in the order of the barrier, and rows stay as given where that is faster.
        Raises InvalidRequest for unequal counts, and OverLimit unless rows as given keep the limit.
        """
        try:
            placement = self._moved(bucket, level)
            self._require_counts(placement)
            self._require_limit(placement)
        except OverLimit:
            if not self._keeps_limit_as_given():
                raise
            return as_given(len(bucket), self.grid)
        return self._faster(placement) if reorder else placement

    def _moved(self, bucket: Ints, level: Moves) -> Placement:
        match level:
            case "intra":
                return Placement(bucket, self._in_bins(bucket))
            case "inter":
                limit = None if self.limit is None else min(MOST, self.limit * self.grid.bins)
                group = self._group_of_row(1, limit)
                moved = group * self.grid.group_size + self._in_groups(group, 1, limit)
                return Placement(moved, self._filled_in_order(moved))
            case "both":
                return self._in_both()

    def _faster(self, placement: Placement) -> Placement:
        """The placement with its bins in the order of the barrier, or the rows as given."""
        grid = self.grid
        loads = self._of_bins(self.costs, placement)
        new_bin = bin_order.ordered(loads, self.barrier, grid.stages)
        planned = duration(bin_order.moved(loads, new_bin), self.barrier, grid.stages)
        given = duration(sums_as_given(self.costs, grid.buckets, grid.bins), self.barrier, grid.stages)
        if given < planned and self._keeps_limit_as_given():
            return as_given(len(placement.bucket), grid)
        return replace(placement, bin=new_bin[placement.bucket, placement.bin])

    def _in_bins(self, bucket: Ints) -> Ints:
        by_bucket = np.argsort(bucket, kind="stable")
        ends = np.cumsum(np.bincount(bucket, minlength=self.grid.buckets)).tolist()
        bins = np.empty_like(bucket)
        bins[by_bucket] = self._placed(by_bucket, ends, self.grid.bins, self.limit)
        return bins

    def _in_both(self) -> Placement:
        grid = self.grid
        group = self._group_of_row(grid.bins, self.limit)
        placed = group * grid.group_size * grid.bins + self._in_groups(group, grid.bins, self.limit)
        loads = sums(self.costs, placed, grid.size)
        n_whole = grid.buckets - grid.last_group
        bucket_of_bin = self._dealt(0, loads[: n_whole * grid.bins], grid.group_size)
        if grid.last_group:
            of_last = self._dealt(n_whole, loads[n_whole * grid.bins :], grid.last_group)
            bucket_of_bin = np.concatenate([bucket_of_bin, of_last])
        by_bucket = np.argsort(bucket_of_bin, kind="stable")
        bin_in_bucket = np.empty_like(by_bucket)
        bin_in_bucket[by_bucket] = np.arange(grid.size) % grid.bins
        return Placement(bucket_of_bin[placed], bin_in_bucket[placed])

    def _dealt(self, first: int, loads: Costs, group_size: int) -> Ints:
        """The bucket of each bin of groups of one size; `first` is the first bucket of each."""
        by_group = loads.reshape(-1, group_size * self.grid.bins)
        begins = first + group_size * np.arange(len(by_group))[:, None]
        return (begins + bin_order.dealt(by_group, group_size, self.barrier)).reshape(-1)

    def _group_of_row(self, bins_of_bucket: int, limit: int | None) -> Ints:
        """The group of each row: groups are balanced with each other as buckets of as many bins."""
        grid, n_rows = self.grid, len(self.costs)
        n_whole = grid.buckets // grid.group_size
        group = np.zeros(n_rows, dtype=np.int64)
        in_whole = np.arange(n_rows)
        if grid.last_group:  # has its share of the rows by descending cost, at equal distances
            number = np.arange(n_rows + 1) * grid.last_group // grid.buckets
            is_last = np.empty(n_rows, dtype=bool)
            is_last[np.argsort(np.iinfo(np.uint64).max - self.costs, kind="stable")] = np.diff(number) > 0
            group[is_last] = n_whole
            in_whole = np.flatnonzero(~is_last)
        if n_whole > 1:
            of_group = None if limit is None else min(MOST, limit * grid.group_size * bins_of_bucket)
            group[in_whole] = self._placed(in_whole, [len(in_whole)], n_whole, of_group)
        return group

    def _in_groups(self, group: Ints, bins_of_bucket: int, limit: int | None) -> Ints:
        """The bin of each row among all bins of its group; groups of one size are placed at once."""
        grid = self.grid
        n_whole = grid.buckets // grid.group_size
        narrow = group.astype(np.min_scalar_type(n_whole))  # numpy sorts 16 bits by radix
        by_group = np.argsort(narrow, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=n_whole + 1))
        whole = int(ends[n_whole - 1])
        placed = np.empty_like(group)
        chosen = by_group[:whole]
        n_bins = grid.group_size * bins_of_bucket
        placed[chosen] = self._placed(chosen, ends[:n_whole].tolist(), n_bins, limit)
        if grid.last_group:
            chosen = by_group[whole:]
            placed[chosen] = self._placed(chosen, [len(chosen)], grid.last_group * bins_of_bucket, limit)
        return placed

    def _placed(self, chosen: Ints, ends: Sequence[int], bins: int, limit: int | None) -> Ints:
        memory = None if self.memory is None or limit is None else self.memory[chosen]
        try:
            return self.method(RowGroups(self.costs[chosen], ends, bins, self.equal_counts, memory, limit))
        except NoRoom as refusal:  # numbers its row among the chosen ones
            raise NoRoom(str(refusal), int(chosen[refusal.row])) from refusal.__cause__

    def _filled_in_order(self, bucket: Ints) -> Ints:
        by_bucket = np.argsort(bucket, kind="stable")
        counts = np.bincount(bucket, minlength=self.grid.buckets)
        number = np.arange(len(by_bucket)) - np.repeat(np.cumsum(counts) - counts, counts)
        bins = np.empty_like(bucket)
        bins[by_bucket] = number * self.grid.bins // np.repeat(counts, counts)
        return bins

    def _of_bins(self, values: Costs, placement: Placement) -> Costs:
        """The sum of the values of each bin; shape [buckets, bins]."""
        places = placement.bucket * self.grid.bins + placement.bin
        return sums(values, places, self.grid.size).reshape(self.grid.buckets, self.grid.bins)

    def _require_counts(self, placement: Placement) -> None:
        places = placement.bucket * self.grid.bins + placement.bin
        counts = np.bincount(places, minlength=self.grid.size)
        if self.equal_counts and int(counts.min()) != int(counts.max()):
            raise InvalidRequest(
                f"`{self.name}` puts {counts.min():,} to {counts.max():,} rows in a microbatch. Use "
                "`greedybinpacking`, or allow microbatches of different counts with `equal_counts=False`."
            )

    def _require_limit(self, placement: Placement) -> None:
        if self.memory is None or self.limit is None:
            return
        most = int(self._of_bins(self.memory, placement).max())
        if most > self.limit:
            raise OverLimit(
                f"`{self.name}` fills a microbatch with {most:,}, and it may hold {self.limit:,}. Balance at "
                "level `both` by `greedybinpacking`, or raise the limit."
            )

    def _keeps_limit_as_given(self) -> bool:
        if self.memory is None or self.limit is None:
            return True
        return int(sums_as_given(self.memory, self.grid.buckets, self.grid.bins).max()) <= self.limit
