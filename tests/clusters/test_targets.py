"""Targets of categories: they add up to the size, and grow with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.clusters.balance import targets_of, water_filling
from factory.clusters.balance_options import NamedShares, Target, Temperature
from factory.errors import ConfigurationError

COUNTS = st.lists(st.integers(1, 10**7), min_size=1, max_size=40)
FRACTION = st.floats(0, 1)
TEMPERATURES = st.floats(0, 1).map(Temperature)
UNIFORM: Target = "uniform"
TARGETS = st.just(UNIFORM) | TEMPERATURES


def targets(counts: list[int], target: Target, size: float) -> np.ndarray:
    return targets_of([str(number) for number in range(len(counts))], np.array(counts), target, size)


@given(COUNTS, TARGETS, FRACTION)
def test_the_documents_that_stay_add_up_to_the_size(counts: list[int], target: Target, share: float) -> None:
    size = share * sum(counts)
    stay = np.minimum(targets(counts, target, size), counts)
    assert (stay >= 0).all()
    assert stay.sum() == pytest.approx(size, rel=1e-9, abs=1e-6)


@given(COUNTS, TARGETS, FRACTION, FRACTION)
def test_targets_grow_with_the_size(counts: list[int], target: Target, first: float, second: float) -> None:
    small, large = sorted((first * sum(counts), second * sum(counts)))
    assert (targets(counts, target, small) <= targets(counts, target, large)).all()


@given(COUNTS, TARGETS, st.integers(0, 10**6))
def test_one_document_more_lowers_no_target(counts: list[int], target: Target, size: int) -> None:
    size = min(size, sum(counts) - 1)
    assert (targets(counts, target, size) <= targets(counts, target, size + 1)).all()


@given(COUNTS, TARGETS)
def test_the_size_of_the_dataset_keeps_every_document(counts: list[int], target: Target) -> None:
    assert (targets(counts, target, sum(counts)) >= counts).all()


@given(COUNTS, FRACTION)
def test_a_uniform_target_is_one_level_for_all(counts: list[int], share: float) -> None:
    levels = targets(counts, "uniform", share * sum(counts))
    assert levels.max() == pytest.approx(levels.min(), rel=1e-12)


@given(COUNTS, FRACTION)
def test_temperature_zero_is_uniform_and_one_keeps_the_distribution(counts: list[int], share: float) -> None:
    size = share * sum(counts)
    assert (targets(counts, Temperature(0), size) == targets(counts, "uniform", size)).all()
    assert targets(counts, Temperature(1), size) == pytest.approx(share * np.array(counts))


@given(COUNTS, st.permutations(range(8)), FRACTION)
def test_the_order_of_the_categories_changes_no_target(
    counts: list[int], order: list[int], share: float
) -> None:
    counts = (counts * 8)[:8]
    size = share * sum(counts)
    in_order = targets([counts[number] for number in order], "uniform", size)
    assert in_order == pytest.approx(targets(counts, "uniform", size)[order])


def test_a_scarce_category_stays_whole_and_the_others_make_up_for_it() -> None:
    counts = np.array([10, 100, 1000])
    assert water_filling(counts, np.ones(3), 250).tolist() == [140, 140, 140]
    assert water_filling(counts, np.ones(3), 150).tolist() == [70, 70, 70]


def test_a_temperature_between_flattens_in_part() -> None:
    assert targets([100, 10_000], Temperature(0.5), 1_100).tolist() == [100, 1_000]


def test_named_shares_are_of_the_size_and_nobody_makes_up_for_a_lack() -> None:
    target = NamedShares({"0": 0.5, "1": 0.2})
    assert targets([100, 100, 600, 200], target, 400).tolist() == pytest.approx([200, 80, 90, 30])


def test_shares_that_add_up_to_one_leave_nothing_for_other_categories() -> None:
    assert targets([100, 100, 600], NamedShares({"0": 0.1, "1": 0.9}), 80).tolist() == [8, 72, 0]


@given(COUNTS, FRACTION, FRACTION)
def test_named_shares_grow_with_the_size(counts: list[int], first: float, second: float) -> None:
    small, large = sorted((first * sum(counts), second * sum(counts)))
    target = NamedShares({"0": 0.4})
    assert (targets(counts, target, small) <= targets(counts, target, large)).all()


def test_a_share_of_an_unknown_category_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"`bocks`\. Did you mean `books`\?"):
        targets_of(["books", "web"], np.array([1, 2]), NamedShares({"bocks": 0.5}), 2)


def test_no_categories_have_no_targets() -> None:
    for target in (UNIFORM, Temperature(0.5)):
        assert targets([], target, 0).tolist() == []
