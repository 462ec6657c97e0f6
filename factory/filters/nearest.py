"""Sentences about names that do not exist, with the nearest one that does."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def known(what: str, name: str, names: Iterable[str]) -> str:
    """That `name` is no `what`, and which one was perhaps meant, or else all there are."""
    names = list(names)
    near = get_close_matches(name, names, n=1)
    remedy = f"Did you mean `{near[0]}`?" if near else f"Use one of {quoted(names)}."
    return f"`{name}` is no {what}. {remedy}"


def quoted(names: Iterable[str], separator: str = ", ") -> str:
    """The names in backticks, one after the other."""
    return separator.join(f"`{name}`" for name in names)
