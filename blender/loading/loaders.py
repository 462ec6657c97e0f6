"""The loader of a spec, and the loaders of updates of its blend while they are read.

loaders = Loaders(loader, blender.opened)
with loaders.over("8d02...") as updated:    # made at the first call, with the options of `loader`
    next(updated.batches(StepRange(1_000), rank=3))
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from blender.loading.loader import Loader
from blender.opened.blend import Blend

Encoded = TypeVar("Encoded")


class Loaders(Generic[Encoded]):
    """Loaders by blend: the first one, the one used last, and all that are in use; safe for many threads."""

    def __init__(self, first: Loader[Encoded], open_blend: Callable[[str], Blend]) -> None:
        """`open_blend` opens the blend of an id, or raises."""
        self.first, self._open_blend = first, open_blend
        self._loaders = {first.blend.id: first}
        self._users: Counter[str] = Counter()
        self._latest = first.blend.id
        self._lock = threading.Lock()

    @contextmanager
    def over(self, blend: str) -> Iterator[Loader[Encoded]]:
        """The loader of a blend; raises the errors of `open_blend` and of `Loader`."""
        with self._lock:
            if blend not in self._loaders:
                self._loaders[blend] = self.first.over(self._open_blend(blend))
            self._users[blend] += 1
            self._latest = blend
            loader = self._loaders[blend]
            self._end_idle()
        try:
            yield loader
        finally:
            with self._lock:
                self._users[blend] -= 1
                self._end_idle()

    def close(self) -> None:
        """End all threads."""
        with self._lock:
            for loader in self._loaders.values():
                loader.close()

    def end(self) -> None:
        """As `close`, without waiting."""
        for loader in self._loaders.values():
            loader.end()

    def _end_idle(self) -> None:
        ready = {self.first.blend.id, self._latest}
        for blend in [blend for blend in self._loaders if blend not in ready and not self._users[blend]]:
            self._loaders.pop(blend).end()
