"""Keeps memory that blocks have freed in the process, for a server that makes one block after another.

By default glibc returns freed megabytes to the system and gets the next ones from it, zeroed page by page:
hundreds of page faults per block, which cost as much as sending it. The process keeps at most what all
blocks under way occupied at once, and returns it once most of many calls have ended
(`blender.serving.upkeep`). By default each thread also has an arena of its own, and Arrow a pool that keeps
what its threads have freed: 37 % of what 100 streams had held stayed. With one arena for all threads and for
Arrow 2 to 4 % stay, and blocks cost no more CPU. PyArrow starts a thread when it is imported, which takes an
arena; therefore `blender.serving.__main__` configures memory before it imports anything else.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # numbers of malloc.h
_KEPT_BYTES = 64 << 20  # free memory at the end of an arena that glibc keeps
_LARGE_BYTES = 32 << 20  # larger allocations come straight from the system; glibc accepts no more


def keep_freed_memory() -> bool:
    """Configure the C library, and Arrow before its import; return whether the C library supports that."""
    assert "pyarrow" not in sys.modules, "its thread has an arena by now, and its pool is chosen"
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # macOS and musl use other allocators
        return False
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    wanted = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES))
    return all(mallopt(number, value) for number, value in wanted)


def trim_memory() -> None:
    """Return free memory in all arenas to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
