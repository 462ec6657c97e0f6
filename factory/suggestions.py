"""Sentences about names that do not exist, with the nearest one that does."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 12


def known(what: str, name: str, names: Iterable[str]) -> str:
    """That `name` is no `what`, and the one that was perhaps meant, or all there are, of many the nearest."""
    names = list(names)
    near = get_close_matches(name, names, n=1)
    if near:
        remedy = f"Did you mean `{near[0]}`?"
    elif len(names) <= _SHOWN:
        remedy = f"Use one of {quoted(names)}."
    else:
        alike = get_close_matches(name, names, n=_SHOWN, cutoff=0.0)
        remedy = f"Use one of {len(names)}, such as {quoted(alike)}."
    return f"`{name}` is no {what}. {remedy}"


def quoted(names: Iterable[str], separator: str = ", ") -> str:
    """The names in backticks, one after the other."""
    return separator.join(f"`{name}`" for name in names)
