"""Balancing methods by name: each puts the rows of a group in bins by their costs.

    balancer("greedybinpacking")(RowGroups(costs, ends=[n], bins=8))    # array of int64: the bin of each row

    @register_balancer("mine")
    def mine(costs, bins):                      # array of uint64 -> the bin of each row, 0 .. bins - 1
        return np.arange(len(costs)) % bins

`greedybinpacking` places the costliest row first: without a limit and equal counts at most 4/3 of the best
(Graham, 1969). `karmarkar-karp` is the largest differencing method (1982); its time grows with rows times
bins, and it is no better on rows of text. Ties go to the lower row, then to the lower bin, so that a plan is
equal on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from blender.arrays import as_arrow, as_numpy
from blender.errors import InvalidRequest
from blender.loading.costs import Costs
from factory import _native
from factory.errors import FactoryError, first_line

Bins = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowGroups:
    """Rows to put in bins, in consecutive groups that each have bins of their own."""

    costs: Costs
    ends: Sequence[int]
    """The end of each group."""
    bins: int
    """Bins of a group."""
    equal_counts: bool = False
    """Whether all bins of a group hold the same number of rows."""
    memory: Costs | None = None
    limit: int | None = None
    """The most memory of a bin."""


class OverLimit(InvalidRequest):
    """Rows were not placed below the limit of memory."""


class NoRoom(OverLimit):
    """No bin has room for `row`, a number among the rows that were to be placed."""

    def __init__(self, sentence: str, row: int) -> None:
        super().__init__(sentence)
        self.row = row


Method = Callable[[RowGroups], Bins]
Balancer = Callable[[Costs, int], npt.ArrayLike]
PlaceType = TypeVar("PlaceType", bound=Balancer)

THREADS = 4  # for groups; a plan is the same with any number

_METHODS: dict[str, Method] = {}


_ROW_WITHOUT_ROOM = re.compile(r"Row (\d+) ")  # how the kernel's sentence begins


def balancer(name: str) -> Method:
    """The balancing method of a name; raises InvalidRequest for an unknown one."""
    if not isinstance(name, str) or name not in _METHODS:
        known = ", ".join(f"`{known}`" for known in sorted(_METHODS))
        raise InvalidRequest(f"There is no balancer `{name}`. Use {known}, or register one of your own.")
    return _METHODS[name]


def register_balancer(name: str) -> Callable[[PlaceType], PlaceType]:
    """Register a function from the costs of a group and its number of bins to the bin of each row.

    A plan refuses bins that do not exist, unequal counts where equal ones are asked for, and a bin above the
    limit. Raises InvalidRequest for the name of another balancer, because its plans would change.
    """

    def register(place: PlaceType) -> PlaceType:
        def of_groups(rows: RowGroups) -> Bins:
            starts = [0, *rows.ends[:-1]]
            groups = zip(starts, rows.ends, strict=True)
            return np.concatenate([_checked(name, place, rows.costs[a:b], rows.bins) for a, b in groups])

        if name in _METHODS:
            raise InvalidRequest(f"There is a balancer `{name}` already. Register yours under another name.")
        if not callable(place):
            raise InvalidRequest(f"Balancer `{name}` is a {type(place).__name__}. Register a function.")
        _METHODS[name] = of_groups
        return place

    return register


def _checked(name: str, place: Balancer, costs: Costs, bins: int) -> Bins:
    try:
        placed = np.asarray(place(costs, bins))
    except FactoryError:
        raise
    except Exception as error:
        raise InvalidRequest(
            f"Balancer `{name}` failed on {len(costs):,} rows in {bins:,} bins "
            f"({type(error).__name__}: {first_line(error)}). Correct its function."
        ) from error
    if placed.shape != costs.shape or not np.issubdtype(placed.dtype, np.integer):
        raise InvalidRequest(
            f"Balancer `{name}` returned {placed.dtype} of shape {placed.shape} for {len(costs):,} rows. "
            "Return the bin of each row, each row once."
        )
    if len(placed) and not 0 <= int(placed.min()) <= int(placed.max()) < bins:
        raise InvalidRequest(
            f"Balancer `{name}` put rows in bins {placed.min()} to {placed.max()}. Use bins 0 to {bins - 1}."
        )
    return placed.astype(np.int64)


def _greedy(rows: RowGroups) -> Bins:
    try:
        placed = _native.balance_greedy(
            as_arrow(rows.costs),
            list(rows.ends),
            rows.bins,
            memory=None if rows.memory is None or rows.limit is None else as_arrow(rows.memory),
            limit=rows.limit if rows.memory is not None else None,
            equal_counts=rows.equal_counts,
            threads=THREADS,
        )
    except LookupError as error:
        sentence = str(error.args[0])
        row = _ROW_WITHOUT_ROOM.match(sentence)
        if row is None:
            raise
        raise NoRoom(sentence, int(row[1])) from error
    return as_numpy(placed).astype(np.int64)


def _karmarkar_karp(rows: RowGroups) -> Bins:
    try:
        placed = _native.balance_karmarkar_karp(
            as_arrow(rows.costs), list(rows.ends), rows.bins, threads=THREADS
        )
    except ValueError as error:
        raise InvalidRequest(f"{error} Use `greedybinpacking`.") from error
    return as_numpy(placed).astype(np.int64)


_METHODS["greedybinpacking"] = _greedy
_METHODS["karmarkar-karp"] = _karmarkar_karp


@register_balancer("zigzag")
def zigzag(costs: Costs, bins: int) -> Bins:
    """Deal rows by descending cost to the bins, forth and back; the bins get equal numbers of rows."""
    turns = np.concatenate([np.arange(bins), np.arange(bins)[::-1]])
    placed = np.empty(len(costs), dtype=np.int64)
    placed[_descending(costs)] = np.resize(turns, len(costs))
    return placed


@register_balancer("v-shape")
def v_shape(costs: Costs, bins: int) -> Bins:
    """Bins of `zigzag`, the costliest at both ends and the cheapest in the middle.

    The order lasts without `reorder` only. In a pipeline the opposite order is faster (`order.hill`).
    """
    placed = zigzag(costs, bins)
    loads = np.bincount(placed, weights=costs.astype(np.float64), minlength=bins)
    by_load: Bins = np.argsort(-loads, kind="stable").astype(np.int64)
    position = np.empty(bins, dtype=np.int64)
    ends = np.arange(bins)
    position[by_load[0::2]] = ends[: (bins + 1) // 2]
    position[by_load[1::2]] = ends[::-1][: bins // 2]
    return position[placed]


def _descending(costs: Costs) -> npt.NDArray[np.int64]:
    """The rows from the costliest to the cheapest; rows of equal cost keep their order."""
    return np.argsort(np.iinfo(np.uint64).max - costs, kind="stable")
