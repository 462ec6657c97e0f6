"""Positions by number are those that a scan per number finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.spec.groups import positions_by_number


def scanned(numbers: np.ndarray) -> list[tuple[int, list[int]]]:
    """The definition: one scan of the column per distinct number."""
    return [(number, np.flatnonzero(numbers == number).tolist()) for number in sorted(set(numbers.tolist()))]


def grouped(numbers: np.ndarray) -> list[tuple[int, list[int]]]:
    return [(number, positions.tolist()) for number, positions in positions_by_number(numbers)]


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 70_000)), max_size=80))
def test_positions_by_number_are_those_that_scans_find(numbers: list[int]) -> None:
    column = np.array(numbers, dtype=np.int64)
    assert grouped(column) == scanned(column)


@pytest.mark.parametrize("largest", [0, 254, 255, 256, 65_534, 65_535, 65_536, 1 << 20])
def test_the_largest_number_of_every_width_is_found(largest: int) -> None:
    column = np.array([largest, 0, largest, 1 % (largest + 1)], dtype=np.int64)
    assert grouped(column) == scanned(column)


def test_many_equal_numbers_keep_the_order_of_their_positions() -> None:
    column = np.random.default_rng(0).integers(0, 306, 20_000)
    assert grouped(column) == scanned(column)
