"""The loader of a spec, and the loaders of updates of its blend while they are read.

loaders = Loaders(loader, blender.opened)
with loaders.over("8d02...") as updated:    # made at the first call, with the options of `loader`
    next(updated.batches(StepRange(1_000), rank=3))
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Generic, TypeVar

from blender.call_context import current_context
from blender.loading.loader import Loader
from blender.opened.blend import Blend

Encoded = TypeVar("Encoded")


class Loaders(Generic[Encoded]):
    """Loaders by blend: the first one, the one used last, and all that are in use; safe for many threads."""

    def __init__(self, first: Loader[Encoded], open_blend: Callable[[str], Blend]) -> None:
        """`open_blend` opens the blend of an id, or raises."""
        self.first, self._open_blend = first, open_blend
        self._loaders = {first.blend.id: Future[Loader[Encoded]]()}
        self._loaders[first.blend.id].set_result(first)
        self._users: Counter[str] = Counter()
        self._latest = first.blend.id
        self._lock = threading.Lock()

    @contextmanager
    def over(self, blend: str) -> Iterator[Loader[Encoded]]:
        """The loader of a blend; raises the errors of `open_blend` and of `Loader`, and Stalled.

        One caller makes it, and others of the same blend wait within their calls.
        """
        with self._lock:
            is_new = blend not in self._loaders
            loader = self._loaders.setdefault(blend, Future())
            self._users[blend] += 1
        try:
            if is_new:
                self._make(blend, loader)
            yield current_context().result(
                loader, lambda: f"The loader of blend {blend} was not made in time."
            )
        finally:
            with self._lock:
                self._users[blend] -= 1
                self._end_idle()

    def close(self) -> None:
        """End all threads."""
        for loader in self._made():
            loader.close()

    def end(self) -> None:
        """As `close`, without waiting."""
        for loader in self._made():
            loader.end()

    def _make(self, blend: str, loader: Future[Loader[Encoded]]) -> None:
        try:
            loader.set_result(self.first.over(self._open_blend(blend)))
        except BaseException as error:
            with self._lock:
                self._loaders.pop(blend)
            loader.set_exception(error)
            raise
        with self._lock:
            self._latest = blend
            self._end_idle()

    def _made(self) -> list[Loader[Encoded]]:
        with self._lock:
            return [loader.result() for loader in self._loaders.values() if loader.done()]

    def _end_idle(self) -> None:
        ready = {self.first.blend.id, self._latest}
        for blend in [blend for blend in self._loaders if blend not in ready and not self._users[blend]]:
            self._loaders.pop(blend).result().end()
