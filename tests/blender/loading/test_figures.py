"""Times at the barriers: closed forms, and a plain simulation of one forward, one backward."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.loading.bin_order import hill, moved, ordered
from blender.loading.figures import bounds, times
from blender.loading.pipeline import BACKWARD, pipelined

loads = st.integers(1, 5).flatmap(
    lambda bins: st.lists(st.lists(st.integers(1, 99), min_size=bins, max_size=bins), min_size=1, max_size=4)
)


@given(loads)
def test_times_are_those_of_their_definitions(rows: list[list[int]]) -> None:
    equal = sum(map(sum, rows)) / len(rows)
    found = times(np.array(rows, dtype=np.uint64))
    assert found["step"] == pytest.approx(max(map(sum, rows)) / equal)
    assert found["microbatch"] == pytest.approx(
        sum(max(column) for column in zip(*rows, strict=True)) / equal
    )
    assert found["pipeline"] == pytest.approx(found["step"])  # a pipeline of one stage


@given(st.integers(1, 6), st.integers(1, 12))
def test_equal_microbatches_take_the_time_of_the_textbook(stages: int, bins: int) -> None:
    time = pipelined(np.ones((1, bins)), stages)
    assert time[0] == pytest.approx((bins + stages - 1) * (1 + BACKWARD))


@given(st.integers(2, 5), st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_a_pipeline_is_that_of_a_recursion(stages: int, costs: list[int]) -> None:
    assert pipelined(np.array([costs], dtype=float), stages)[0] == pytest.approx(_by_recursion(costs, stages))


def _by_recursion(costs: list[int], stages: int) -> float:
    """The end of the last pass: each begins when its input is there and the pass before it has ended."""
    n = len(costs)
    passes = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, n)
        forwards = [("F", number) for number in range(n)]
        backwards = [("B", number) for number in range(n)]
        mixed = forwards[:ahead]
        for forward, backward in zip(forwards[ahead:], backwards, strict=False):
            mixed += [forward, backward]
        passes.append(mixed + backwards[n - ahead :])
    known: dict[tuple[int, str, int], float] = {}

    def end(stage: int, kind: str, number: int) -> float:
        if (stage, kind, number) not in known:
            place = passes[stage].index((kind, number))
            before = end(stage, *passes[stage][place - 1]) if place else 0.0
            if kind == "F":
                given_at = end(stage - 1, "F", number) if stage else 0.0
            else:
                given_at = end(stage + 1, "B", number) if stage < stages - 1 else end(stage, "F", number)
            known[stage, kind, number] = max(before, given_at) + costs[number] * (
                1 if kind == "F" else BACKWARD
            )
        return known[stage, kind, number]

    return max(end(stage, *passes[stage][-1]) for stage in range(stages))


def test_small_microbatches_at_both_ends_fill_the_pipeline() -> None:
    draw = np.random.default_rng(3)
    costs = np.sort(draw.lognormal(0, 0.8, (20, 32)), axis=1)[:, ::-1]
    hills = np.empty_like(costs)
    hills[:, hill(32)] = costs
    assert hill(5).tolist() == [2, 3, 1, 4, 0]  # the costliest in the middle
    equal = (32 + 7) * (1 + BACKWARD) * costs.mean(axis=1)
    assert (pipelined(hills, 8) / equal).mean() < 1.4 < (pipelined(costs, 8) / equal).mean()


@given(loads)
def test_bins_in_order_of_cost_are_never_slower_at_a_microbatch(rows: list[list[int]]) -> None:
    costs = np.array(rows, dtype=np.uint64)
    place = ordered(costs, "microbatch")
    sorted_costs = np.empty_like(costs)
    np.put_along_axis(sorted_costs, place, costs, axis=1)
    assert (np.diff(sorted_costs.astype(np.int64), axis=1) <= 0).all()
    assert times(sorted_costs)["microbatch"] <= times(costs)["microbatch"] + 1e-9


costly_or_free = st.integers(1, 5).flatmap(
    lambda bins: st.lists(
        st.lists(st.sampled_from([0, 0, 1, 2, 50, 2**40]), min_size=bins, max_size=bins),
        min_size=1,
        max_size=4,
    )
)


@given(costly_or_free, st.integers(1, 6))
def test_no_arrangement_beats_the_bound(rows: list[tuple[int, ...]], stages: int) -> None:
    costs = np.array(rows, dtype=np.uint64)
    least = bounds(costs.reshape(-1), *costs.shape, equal_counts=True, stages=stages)
    measured = times(costs, stages)
    assert all(least[barrier] <= measured[barrier] * (1 + 1e-9) for barrier in least)


def test_rows_that_cost_nothing_take_the_time_of_equal_ones() -> None:
    nothing = np.zeros((2, 3), dtype=np.uint64)
    assert set(times(nothing, stages=4).values()) == {1.0}
    assert set(bounds(nothing.reshape(-1), 2, 3, equal_counts=True, stages=4).values()) == {1.0}


def test_a_pipeline_may_take_less_than_that_of_equal_microbatches() -> None:
    costs = np.array([0, 0, 9, 9, 0, 0], dtype=np.uint64)
    least = bounds(costs, 1, 6, equal_counts=True, stages=2)
    assert least["pipeline"] == pytest.approx(6 / 7)
    assert times(costs[None], stages=2)["pipeline"] >= 6 / 7


@pytest.mark.parametrize("bins", [1, 2, 8])
@pytest.mark.parametrize("rows_in_bin", [1, 3])
def test_equal_rows_are_at_the_bound_of_a_pipeline(bins: int, rows_in_bin: int) -> None:
    costs = np.full(2 * bins * rows_in_bin, 5, dtype=np.uint64)
    assert bounds(costs, 2, bins, equal_counts=True, stages=8)["pipeline"] == pytest.approx(1)


def test_the_bound_of_a_pipeline_is_near_the_plan_of_like_rows() -> None:
    draw = np.random.default_rng(5)
    costs = draw.lognormal(8, 0.02, (4, 8)).astype(np.uint64)
    planned = times(moved(costs, ordered(costs, "pipeline", 8)), stages=8)["pipeline"]
    least = bounds(costs.reshape(-1), 4, 8, equal_counts=True, stages=8)["pipeline"]
    assert 0.97 * planned < least <= planned


def test_the_costliest_row_passes_every_stage_both_ways() -> None:
    costs = np.array([1, 1, 1, 97], dtype=np.uint64)
    least = bounds(costs, 1, 4, equal_counts=True, stages=8)["pipeline"]
    assert least == pytest.approx(97 * 8 / (25 * (4 + 7)))


@pytest.mark.parametrize("bins", range(1, 7))
@pytest.mark.parametrize("stages", [2, 4, 8])
def test_the_order_of_few_bins_is_the_faster_of_hill_and_descending(bins: int, stages: int) -> None:
    draw = np.random.default_rng(bins)
    costs = (draw.lognormal(5, 1, (50, bins))).astype(np.uint64)
    descending = np.sort(costs, axis=1)[:, ::-1]
    hills = np.empty_like(costs)
    hills[:, hill(bins)] = descending
    planned = pipelined(moved(costs, ordered(costs, "pipeline", stages)).astype(float), stages)
    both = [pipelined(order.astype(float), stages) for order in (hills, descending)]
    assert (planned == np.minimum(*both)).all()
