"""The gaps between attempts, against the equations of the paper and against a log without a store."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blender.global_batches.log.state import Delta, Lane, LogState
from blender.global_batches.policies import AdaptiveCommit, LaneActivity, Naive
from factory.errors import ConfigurationError

WINDOWS = st.floats(1e-4, 10)
LANES = st.integers(1, 256)


@given(WINDOWS, LANES, st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_gap_is_the_smallest_that_keeps_both_budgets(
    window: float, lanes: int, conflict_budget: float, duty_budget: float
) -> None:
    policy = AdaptiveCommit(conflict_budget, duty_budget)
    gap = policy.least_gap(window, lanes)

    def conflict(gap: float) -> float:
        return 1 - math.exp(-(lanes - 1) * window / (window + gap))

    def duty(gap: float) -> float:
        return window / (window + gap)

    assert conflict(gap) <= conflict_budget * (1 + 1e-9)
    assert duty(gap) <= duty_budget * (1 + 1e-9)
    shorter = gap * 0.999
    assert conflict(shorter) > conflict_budget or duty(shorter) > duty_budget


def test_the_gap_of_the_paper_s_producers() -> None:
    assert AdaptiveCommit().least_gap(0.04, 32) == pytest.approx(31 * 0.04 / 0.0512933 - 0.04, rel=1e-5)
    assert AdaptiveCommit().least_gap(0.04, 1) == pytest.approx(0.04 * 19)


def test_the_window_is_an_average_of_won_and_lost_attempts() -> None:
    policy = AdaptiveCommit(jitter=0)
    policy.after(1.0, 1)
    assert policy.window == 1.0
    assert policy.after(2.0, 4) == policy.least_gap(1.2, 4)


@given(WINDOWS, LANES, st.integers(0, 1000))
def test_a_gap_varies_by_its_jitter(window: float, lanes: int, seed: int) -> None:
    policy = AdaptiveCommit(random=random.Random(seed))
    gap = policy.after(window, lanes)
    assert 0.8 * policy.gap <= gap <= 1.2 * policy.gap


def test_an_attempt_that_slept_for_an_hour_hides_no_batch_for_longer_than_the_longest_gap() -> None:
    policy = AdaptiveCommit(jitter=0, longest_gap=30)
    policy.after(0.04, 32)
    assert policy.after(3600, 32) == 30


@pytest.mark.parametrize("budget", [0, 1, -0.5, 5])
def test_a_budget_is_a_part(budget: float) -> None:
    with pytest.raises(ConfigurationError, match="`conflict_budget` is"):
        AdaptiveCommit(conflict_budget=budget)
    with pytest.raises(ConfigurationError, match="`duty_budget` is"):
        AdaptiveCommit(duty_budget=budget)


def test_naive_producers_do_not_wait() -> None:
    assert Naive().after(3.0, 100) == 0


def test_lanes_count_while_they_commit_and_are_open() -> None:
    activity = LaneActivity(LogState())
    lanes = {name: Lane(1, name) for name in "abc"}
    state = LogState(lanes=lanes)
    assert activity.live(state, now=0.0, gap=1.0) == 3
    state = replace(state, lanes=lanes | {"a": Lane(1, "a", 1)})
    assert activity.live(state, now=2.0, gap=1.0) == 3
    assert activity.live(state, now=4.0, gap=1.0) == 1  # `a` alone moved in the last three gaps
    state = replace(state, lanes=state.lanes | {"a": Lane(1, "a", 1, closed=True), "b": Lane(1, "b", 9)})
    assert activity.live(state, now=5.0, gap=1.0) == 1
    assert activity.live(state, now=50.0, gap=1.0) == 1


def test_lanes_that_were_given_up_before_the_start_do_not_count() -> None:
    state = LogState(lanes={f"{number}": Lane(1, "gone") for number in range(500)})
    activity = LaneActivity(state)
    assert activity.live(state, now=0.0, gap=0.0) == 1
    state = replace(state, lanes={**state.lanes, "7": Lane(2, "back"), "new": Lane(1, "new")})
    assert activity.live(state, now=1.0, gap=0.0) == 2


@pytest.mark.parametrize("lanes", [4, 16])
def test_producers_that_adapt_keep_the_budget_of_conflicts(lanes: int) -> None:
    """A simulation of section 5.2: attempts of a fixed window, each version for the first that asks."""
    dice = random.Random(5)
    window = 0.04
    policies = [AdaptiveCommit(random=random.Random(seed)) for seed in range(lanes)]
    starts = [dice.uniform(0, 10) for _ in range(lanes)]
    version, won, lost = 0, 0, 0
    pending: list[tuple[float, int, int]] = []
    while won + lost < 4000:
        begin = min(range(lanes), key=starts.__getitem__)
        pending.sort()
        if pending and pending[0][0] <= starts[begin]:
            end, producer, base = pending.pop(0)
            if base == version:
                version, won = version + 1, won + 1
            else:
                lost += 1
            starts[producer] = end + policies[producer].after(window, lanes)
        else:
            pending.append((starts[begin] + window, begin, version))
            starts[begin] = math.inf
    assert lost / (won + lost) < 0.06


def test_a_delta_of_another_lane_is_activity() -> None:
    activity = LaneActivity(LogState())
    state = LogState().after(Delta(1, 0, "a", Lane(1, "a")), Delta(2, 0, "b", Lane(1, "b")))
    activity.live(state, now=0.0, gap=1.0)
    state = state.after(Delta(3, 0, "b", Lane(1, "b", 1)))
    assert activity.live(state, now=10.0, gap=1.0) == 1
