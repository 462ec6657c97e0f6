"""Memory that blocks have left stays with the process, for a server that makes one block after another.

By default glibc gives freed megabytes back to the system and gets the next ones from it, zeroed page by page:
hundreds of page faults a block, which cost as much as sending it. What stays is what all blocks under way
took at once, at most. It is given back once most of many calls have ended (`blender.upkeep`).
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of malloc.h
_KEPT_BYTES = 64 << 20  # free memory at the end of an arena that is not given back
_LARGE_BYTES = 32 << 20  # from this size on memory comes from the system by itself; glibc takes no more


def keep_freed_memory() -> bool:
    """Tell the C library of this process, and whether it is one that listens."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # macOS and musl have allocators of other habits
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE_BYTES) and mallopt(_TRIM_THRESHOLD, _KEPT_BYTES))


def give_back_memory() -> None:
    """Give what is free back to the system, wherever in the arenas it lies."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
