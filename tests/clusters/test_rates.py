"""Rates of categories: they add up to the size, and grow with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.clusters.balance import rates, targets_and_rates
from factory.clusters.balance_options import NamedShares, Target, Temperature
from factory.errors import ConfigurationError

COUNTS = st.lists(st.integers(1, 10**7), min_size=1, max_size=40)
FRACTION = st.floats(0, 1)
TEMPERATURES = st.floats(0, 1).map(Temperature)
UNIFORM: Target = "uniform"
TARGETS = st.just(UNIFORM) | TEMPERATURES


def balance(counts: list[int], target: Target, size: float) -> tuple[np.ndarray, np.ndarray]:
    return targets_and_rates([str(number) for number in range(len(counts))], np.array(counts), target, size)


@given(COUNTS, TARGETS, FRACTION)
def test_the_documents_that_stay_add_up_to_the_size(counts: list[int], target: Target, share: float) -> None:
    size = share * sum(counts)
    targets, shares = balance(counts, target, size)
    assert (shares * counts).sum() == pytest.approx(size, rel=1e-9, abs=1e-6)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert np.minimum(targets, counts) == pytest.approx(shares * counts, rel=1e-9)


@given(COUNTS, TARGETS, FRACTION, FRACTION)
def test_a_smaller_size_keeps_a_subset(
    counts: list[int], target: Target, first: float, second: float
) -> None:
    small, large = sorted((first * sum(counts), second * sum(counts)))
    assert (balance(counts, target, small)[1] <= balance(counts, target, large)[1]).all()


@given(COUNTS, TARGETS, st.integers(0, 10**6))
def test_one_document_more_lowers_no_rate(counts: list[int], target: Target, size: int) -> None:
    size = min(size, sum(counts) - 1)
    assert (balance(counts, target, size)[1] <= balance(counts, target, size + 1)[1]).all()


@given(COUNTS, TARGETS)
def test_all_documents_have_the_rate_one(counts: list[int], target: Target) -> None:
    assert (balance(counts, target, sum(counts))[1] == 1.0).all()


@given(COUNTS, FRACTION)
def test_a_uniform_target_is_one_level_for_all(counts: list[int], share: float) -> None:
    targets, shares = balance(counts, "uniform", share * sum(counts))
    assert len(set(targets)) == 1
    of_scarce = np.array(counts) <= targets
    assert (shares[of_scarce] == 1.0).all()


@given(COUNTS, FRACTION)
def test_temperature_zero_is_uniform_and_one_keeps_the_distribution(counts: list[int], share: float) -> None:
    size = share * sum(counts)
    assert (balance(counts, Temperature(0), size)[1] == balance(counts, "uniform", size)[1]).all()
    assert balance(counts, Temperature(1), size)[1] == pytest.approx(np.full(len(counts), share), abs=1e-9)


@given(COUNTS, st.permutations(range(8)), FRACTION)
def test_the_order_of_the_categories_changes_no_rate(
    counts: list[int], order: list[int], share: float
) -> None:
    counts = (counts * 8)[:8]
    size = share * sum(counts)
    shares = balance(counts, "uniform", size)[1]
    assert balance([counts[number] for number in order], "uniform", size)[1] == pytest.approx(shares[order])


def test_a_scarce_category_stays_whole_and_the_others_make_up_for_it() -> None:
    targets, shares = rates(np.array([10, 100, 1000]), np.ones(3), 250)
    assert targets.tolist() == [140, 140, 140]
    assert shares.tolist() == [1.0, 1.0, 0.14]
    targets, shares = rates(np.array([10, 100, 1000]), np.ones(3), 150)
    assert (targets.tolist(), shares.tolist()) == ([70, 70, 70], [1.0, 0.7, 0.07])


def test_a_temperature_between_flattens_in_part() -> None:
    targets, _ = balance([100, 10_000], Temperature(0.5), 1_100)
    assert targets.tolist() == [100, 1_000]


def test_named_shares_are_of_the_size_and_nobody_makes_up_for_a_lack() -> None:
    target = NamedShares({"0": 0.5, "1": 0.2})
    targets, shares = balance([100, 100, 600, 200], target, 400)
    assert targets.tolist() == pytest.approx([200, 80, 90, 30])
    assert shares.tolist() == pytest.approx([1.0, 0.8, 0.15, 0.15])


def test_shares_that_add_up_to_one_leave_nothing_for_other_categories() -> None:
    targets, shares = balance([100, 100, 600], NamedShares({"0": 0.1, "1": 0.9}), 80)
    assert (targets.tolist(), shares.tolist()) == ([8, 72, 0], [0.08, 0.72, 0.0])


@given(COUNTS, FRACTION, FRACTION)
def test_a_smaller_size_of_named_shares_keeps_a_subset(
    counts: list[int], first: float, second: float
) -> None:
    small, large = sorted((first * sum(counts), second * sum(counts)))
    target = NamedShares({"0": 0.4})
    assert (balance(counts, target, small)[1] <= balance(counts, target, large)[1]).all()


def test_a_share_of_an_unknown_category_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"`bocks`\. Did you mean `books`\?"):
        targets_and_rates(["books", "web"], np.array([1, 2]), NamedShares({"bocks": 0.5}), 2)


def test_no_categories_have_no_rates() -> None:
    for target in ("uniform", Temperature(0.5)):
        assert [len(column) for column in balance([], target, 0)] == [0, 0]
