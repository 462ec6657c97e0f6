"""Limits are inclusive, name the bound that is violated, and 0 is one."""

from __future__ import annotations

import pytest

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, AtMost, Between, Limit
from factory.filters.rules.gopher_quality import word_count


@pytest.mark.parametrize(
    "limit,value,bound",
    [
        (AtLeast(2), 2, None),
        (AtLeast(2), 1.99, 2),
        (AtMost(0.1), 0.1, None),
        (AtMost(0.1), 0.11, 0.1),
        (AtMost(0), 0.0, None),
        (AtMost(0), 1e-9, 0),
        (AtLeast(0), -1, 0),
        (Between(3, 10), 3, None),
        (Between(3, 10), 10, None),
        (Between(3, 10), 2.9, 3),
        (Between(3, 10), 10.1, 10),
        (Between(0, 0), 0.5, 0),
        (Between(3, 10), None, None),
        (AtLeast(1), None, None),
        (AtMost(1), None, None),
    ],
)
def test_a_limit_names_the_bound_a_value_violates(
    limit: Limit, value: float | None, bound: float | None
) -> None:
    assert limit.violated(value) == bound


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"between 10 and 3\. Give the lower bound first"):
        Between(10, 3)


def test_another_limit_leaves_the_rule_as_it_was() -> None:
    changed = word_count.with_limit(AtLeast(1))
    assert (changed.limit, changed.name) == (AtLeast(1), "word_count")
    assert word_count.limit == Between(50, 100_000)


def test_limits_read_as_in_the_documentation() -> None:
    assert [str(limit) for limit in (AtLeast(0.8), AtMost(3_000_000), Between(50, 1e5))] == [
        ">= 0.8",
        "<= 3,000,000",
        "50 to 100,000",
    ]
