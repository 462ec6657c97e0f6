"""Thresholds of Python's garbage collector while the platform is imported."""

from __future__ import annotations

import gc

_ALLOCATIONS = 50_000


def collect_rarely() -> None:
    """Collect garbage after fifty thousand new objects instead of seven hundred.

    Importing the platform makes two hundred thousand objects, which all stay; examining them again and again
    takes an eighth of the time of the import.
    """
    gc.set_threshold(_ALLOCATIONS, 20, 100)


def collect_as_usual() -> None:
    """Collect with Python's own thresholds again, and never examine what exists by now."""
    gc.freeze()
    gc.set_threshold(700, 10, 10)
