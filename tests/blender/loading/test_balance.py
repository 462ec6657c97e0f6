"""Balancers of one's own: registered once, and checked where they fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blender.errors import EndOfData, InvalidRequest
from blender.loading.balance import RowGroups, balancer, register_balancer

ROWS = RowGroups(np.array([3, 2, 1], dtype=np.uint64), [3], 2)


def first_bin(costs: Any, bins: int) -> Any:
    return np.zeros(len(costs), dtype=int)


def test_a_name_is_registered_once() -> None:
    register_balancer("test-once")(first_bin)
    for taken in ("test-once", "greedybinpacking", "zigzag"):
        before = balancer(taken)
        with pytest.raises(InvalidRequest, match=f"There is a balancer `{taken}` already"):
            register_balancer(taken)(lambda costs, bins: np.ones(len(costs), dtype=int))
        assert balancer(taken) is before


def test_a_balancer_is_a_function() -> None:
    with pytest.raises(InvalidRequest, match=r"Balancer `test-number` is a int\. Register a function"):
        register_balancer("test-number")(3)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "name, place, cause",
    [
        ("test-raises", lambda costs, bins: 1 // 0, ZeroDivisionError),
        ("test-ragged", lambda costs, bins: [[0], [1, 2]], ValueError),
        ("test-arguments", lambda: None, TypeError),
    ],
)
def test_a_balancer_that_fails_is_named_with_its_cause(name: str, place: Any, cause: type) -> None:
    register_balancer(name)(place)
    with pytest.raises(
        InvalidRequest, match=rf"Balancer `{name}` failed on 3 rows in 2 bins .{cause.__name__}: "
    ) as e:
        balancer(name)(ROWS)
    assert isinstance(e.value.__cause__, cause)


@pytest.mark.parametrize(
    "name, placed",
    [
        ("test-nan", [np.nan] * 3),
        ("test-two-dimensions", np.zeros((3, 2), dtype=int)),
        ("test-negative", [-1, 0, 1]),
        ("test-none", None),
        ("test-text", ["a", "b", "c"]),
    ],
)
def test_other_than_bins_is_refused(name: str, placed: Any) -> None:
    register_balancer(name)(lambda costs, bins: placed)
    with pytest.raises(InvalidRequest, match=f"Balancer `{name}` "):
        balancer(name)(ROWS)


def test_an_error_of_the_platform_stays_itself() -> None:
    def ends(costs: Any, bins: int) -> Any:
        raise EndOfData("over")

    register_balancer("test-ends")(ends)
    with pytest.raises(EndOfData):
        balancer("test-ends")(ROWS)
