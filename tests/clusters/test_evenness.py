"""Entropy, effective number of categories, and the share of the largest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.clusters.evenness import effective_number, entropy, share_of_largest


def test_equal_categories_count_in_full() -> None:
    assert entropy([5] * 8) == pytest.approx(3)
    assert effective_number([5] * 8 + [0] * 3) == pytest.approx(8)


def test_one_category_or_none_has_no_entropy() -> None:
    assert [entropy(counts) for counts in ([7], [7, 0], [], [0, 0])] == [0.0] * 4


def test_the_largest_hundredth_is_at_least_one_category() -> None:
    assert share_of_largest([1, 2, 7]) == pytest.approx(0.7)
    assert share_of_largest([*range(1, 201)]) == pytest.approx((200 + 199) / 20_100)
    assert share_of_largest([]) == 0.0


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_no_distribution_has_more_effective_categories_than_categories(counts: list[int]) -> None:
    assert 1 - 1e-9 <= effective_number(counts) <= max(1, sum(count > 0 for count in counts)) * (1 + 1e-9)
