"""Numbers and ranges as a command line gives them."""

from __future__ import annotations

import pytest

from blender.errors import InvalidRequest
from blender.number_ranges import numbers_of


@pytest.mark.parametrize(
    "text, numbers", [("3", (3,)), ("0-2,6", (0, 1, 2, 6)), ("0..2, 1", (0, 1, 2)), ("5..5", (5,))]
)
def test_numbers_and_ranges_are_read_in_either_notation(text: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(text, "lanes") == numbers


@pytest.mark.parametrize("text", ["", "a", "3-1", "0..", "..2", "0-1-2", "-1", "1,", "0...2", "12345678"])
def test_anything_else_is_a_sentence(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not a range of lanes. Write numbers and ranges: 0-3,6"):
        numbers_of(text, "lanes")
