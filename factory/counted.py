"""Counts and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: `1 table`, `1,000 tables`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def conjunction(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
