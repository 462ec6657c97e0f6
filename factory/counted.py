"""Counts in sentences."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Return a number with its noun: `1 table`, `1,000 tables`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
