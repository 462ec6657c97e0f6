"""Whole numbers that a user passes, of Python or of numpy."""

from __future__ import annotations

from operator import index

from blender.errors import InvalidRequest

MOST = 2**63 - 1  # an int64


def as_integer(number: object) -> int | None:
    """`number` as an int; None for one of another type, such as a bool, a float or text."""
    try:
        return None if isinstance(number, bool) else index(number)  # type: ignore[arg-type]
    except TypeError:
        return None


def whole_number(value: object, name: str, least: int = 0, most: int = MOST) -> int:
    """`value` as an int; raises InvalidRequest, which names it, for another type or a number outside."""
    number = as_integer(value)
    if number is None or not least <= number <= most:
        upper = "or more" if most == MOST else f"to {most:,}"
        raise InvalidRequest(f"`{name}` is {str(value)[:40]}. Give a whole number, {least:,} {upper}.")
    return number
