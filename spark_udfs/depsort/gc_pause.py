"""A pause of Python's cycle collector, for work that makes many objects and few cycles.

A file's syntax nodes and a repository's symbols are millions of objects that reference counts free. To look
through them for cycles again and again finds none and takes its time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """No collection of cycles while the block runs; what it leaves is collected as ever afterwards."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
