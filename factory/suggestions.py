"""Sentences about unknown names, with the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 12


def unknown_name(noun: str, name: str, names: Iterable[str]) -> str:
    """Say that no `noun` is called `name`, and suggest one of `names`."""
    return f"Unknown {noun} `{name}`. {suggestion(name, names)}"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Name the one of `names` that `name` probably means, else all of them, of many the nearest dozen."""
    names = list(names)
    if near := get_close_matches(name, names, n=1):
        return f"Did you mean `{near[0]}`?"
    if len(names) <= _SHOWN:
        return f"Use one of {quoted(names)}."
    nearest = get_close_matches(name, names, n=_SHOWN, cutoff=0.0)
    return f"Use one of {len(names)}, such as {quoted(nearest)}."


def quoted(names: Iterable[str], separator: str = ", ") -> str:
    """Put the names in backticks and join them."""
    return separator.join(f"`{name}`" for name in names)
