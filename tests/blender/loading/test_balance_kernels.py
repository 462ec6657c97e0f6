"""The kernels that place rows in bins: their rule, their groups and threads, and what they refuse."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Callable
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory._native import balance_greedy, balance_karmarkar_karp

COSTS = st.lists(st.integers(0, 3) | st.integers(0, 10**6) | st.integers(2**64 - 3, 2**64 - 1), max_size=60)
GROUPS = st.lists(st.integers(0, 12), min_size=1, max_size=8)


def uint64(values: object) -> pa.UInt64Array:
    return pa.array(values, pa.uint64())


def skewed_costs(rows: int) -> pa.UInt64Array:
    """Costs of which the largest are thousands of times the median, the same on any machine."""
    uniform = (np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(2654435761)) % np.uint64(2**32)
    return uint64(np.uint64(10**13) // (uniform + np.uint64(10**5)))


def longest_first(costs: list[int], bins: int) -> list[int]:
    loads = [(0, bin_number) for bin_number in range(bins)]
    bin_of_row = [0] * len(costs)
    for row in sorted(range(len(costs)), key=lambda row: -costs[row]):
        load, bin_number = loads[0]
        heapq.heapreplace(loads, (load + costs[row], bin_number))
        bin_of_row[row] = bin_number
    return bin_of_row


def sums(values: list[int], bin_of_row: pa.UInt32Array, bins: int) -> list[int]:
    totals = [0] * bins
    for value, bin_number in zip(values, bin_of_row.to_pylist(), strict=True):
        totals[bin_number] += value
    return totals


@given(COSTS, st.integers(1, 9))
def test_bins_are_those_of_pythons_heap(costs: list[int], bins: int) -> None:
    assert balance_greedy(uint64(costs), [len(costs)], bins).to_pylist() == longest_first(costs, bins)


@pytest.mark.invariant(
    "The bins of a group of rows depend on its costs alone, and under a limit on its memory: ties go to "
    "the lower row, then to the lower bin, and no number of threads changes them."
)
@given(GROUPS, st.integers(1, 5), st.data())
def test_a_group_has_the_bins_that_it_has_alone_on_any_number_of_threads(
    lengths: list[int], bins: int, data: st.DataObject
) -> None:
    ends = np.cumsum(lengths).tolist()
    costs = uint64(data.draw(st.lists(st.integers(0, 99), min_size=ends[-1], max_size=ends[-1])))
    for balance in (balance_greedy, balance_karmarkar_karp):
        alone = [
            balance(costs[start:end], [end - start], bins).to_pylist() for start, end in pairwise([0, *ends])
        ]
        for threads in (1, 2, 8):
            assert balance(costs, ends, bins, threads=threads).to_pylist() == list(chain.from_iterable(alone))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40), st.integers(1, 6))
def test_no_bin_exceeds_the_limit(rows: list[tuple[int, int]], bins: int) -> None:
    costs, memory = [cost for cost, _ in rows], [memory for _, memory in rows]
    limit = sum(memory) // bins + max(memory, default=0)  # room for every row in any order
    bin_of_row = balance_greedy(uint64(costs), [len(rows)], bins, memory=uint64(memory), limit=limit)
    assert all(total <= limit for total in sums(memory, bin_of_row, bins))


def test_the_rows_that_cost_leaves_without_room_are_placed_by_memory() -> None:
    costs, memory = uint64([5, 9, 8, 7, 0]), uint64([0, 1, 1, 1, 3])
    bin_of_row = balance_greedy(costs, [1, 5], 2, memory=memory, limit=3)
    assert bin_of_row.to_pylist() == [0, 1, 1, 1, 0]


def test_equal_counts_fill_every_bin() -> None:
    bin_of_row = balance_greedy(uint64([100, 1, 1, 1, 1, 1]), [6], 2, equal_counts=True)
    assert bin_of_row.to_pylist() == [0, 1, 1, 1, 0, 0]


THREES = uint64(np.full(5184, 3))


@pytest.mark.invariant(
    "The bins of a group of rows depend on its costs alone, and under a limit on its memory: ties go to "
    "the lower row, then to the lower bin, and no number of threads changes them."
)
@pytest.mark.parametrize(
    "balance, digest",
    [
        (balance_greedy, "4f54415f90cf4d38"),
        (partial(balance_greedy, equal_counts=True), "02d5c3207c83e4d9"),
        (partial(balance_greedy, memory=THREES, limit=222), "85f51ccde866569f"),
        (balance_karmarkar_karp, "6bbc5dbed39924e9"),
    ],
    ids=("greedy", "equal counts", "limit", "karmarkar-karp"),
)
def test_the_bins_of_a_published_plan_never_change(
    balance: Callable[..., pa.UInt32Array], digest: str
) -> None:
    for threads in (1, 2, 8):
        bin_of_row = balance(skewed_costs(5184), [2592, 5184], 36, threads=threads)
        assert hashlib.sha256(bin_of_row.to_numpy().tobytes()).hexdigest()[:16] == digest


@pytest.mark.parametrize(
    "memory, sentence",
    [
        ([1, 1, 7, 1], "Row 2 needs 7 of memory, and the limit of a bin is 4. "),
        (
            [0, 3, 3, 3],
            "Row 3 needs 3 of memory, and none of the 2 bins has room for it below the limit of 4, ",
        ),
    ],
)
def test_a_row_without_room_is_named(memory: list[int], sentence: str) -> None:
    with pytest.raises(LookupError) as refusal:
        balance_greedy(uint64([4, 3, 2, 1]), [1, 4], 2, memory=uint64(memory), limit=4)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "arguments, options, sentence",
    [
        ((pa.array([1.0]), [1], 1), {}, "`costs` must be a UInt64 array and is Float64. Cast it."),
        ((uint64([1, None]), [2], 1), {}, "`costs` has 1 nulls. Fill them first."),
        ((uint64([1, 2]), [2, 1], 1), {}, "The end 1 stands after the end 2. "),
        ((uint64([1, 2]), [1], 1), {}, "The last group ends at row 1, and there are 2 costs. "),
        ((uint64([1, 2]), [], 1), {}, "The last group ends at row 0, and there are 2 costs. "),
        ((uint64([1]), [1], 0), {}, "`bins` is 0. Pass 1 or more."),
        ((uint64([1]), [1], 1), {"threads": 0}, "`threads` is 0. Pass 1 or more."),
        ((uint64([1]), [1], 1), {"memory": uint64([1])}, "`memory` is given without `limit`. "),
        ((uint64([1]), [1], 1), {"limit": 1}, "`limit` is given without `memory`. "),
        (
            (uint64([1]), [1], 1),
            {"limit": 1, "memory": uint64([])},
            "`memory` has 0 values, and there are 1 costs. ",
        ),
        (
            (uint64([1, 2, 3, 4]), [1, 4], 2),
            {"equal_counts": True},
            "The 1 rows from row 0 do not fill 2 bins ",
        ),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(
    arguments: tuple[pa.Array, list[int], int], options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        balance_greedy(*arguments, **options)  # type: ignore[arg-type]


def test_differencing_refuses_more_work_than_seconds() -> None:
    costs = uint64(np.zeros(10_001, np.uint64))
    balance_karmarkar_karp(costs[:100], [100], 10_000)
    with pytest.raises(
        ValueError, match=r"takes too long for 10001 rows in 10000 bins: .* 100000000 at most"
    ):
        balance_karmarkar_karp(costs, [10_001], 10_000)
