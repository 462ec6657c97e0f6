"""How often a process of commands or Dagster looks for garbage."""

from __future__ import annotations

import gc

_ALLOCATIONS = 50_000


def collect_rarely() -> None:
    """Let Python look for cycles of garbage after fifty thousand new objects instead of seven hundred.

    Importing the platform makes two hundred thousand objects that all stay; looking at them again and again
    takes an eighth of the time of an import.
    """
    gc.set_threshold(_ALLOCATIONS, 20, 100)
