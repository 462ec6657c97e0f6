"""Whole numbers that a user passes, of Python or of numpy."""

from __future__ import annotations

from operator import index

from blender.errors import InvalidRequest

MOST = 2**63 - 1  # an int64


def whole_number(value: object, name: str, least: int = 0, most: int = MOST) -> int:
    """`value` as an int; raises InvalidRequest, which names it, for another type or a number outside."""
    try:
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        upper = "or more" if most == MOST else f"to {most:,}"
        raise InvalidRequest(f"`{name}` is {str(value)[:40]}. Give a whole number, {least:,} {upper}.")
    return number
