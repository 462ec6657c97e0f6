"""A pause of Python's cycle collector, for work that makes many objects and few cycles.

The syntax nodes of a file and the symbols of a repository are millions of objects, freed by reference
counting. The collector would scan them over and over and find no cycle.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable cycle collection while the block runs; cycles it leaves are collected afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
