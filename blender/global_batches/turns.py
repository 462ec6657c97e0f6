"""Work that several threads want done, and one of them does.

    turns = Turns()
    turns.take("poll", poll, lambda: "The poll took too long.")     # True if this thread has polled

Another thread that comes meanwhile waits for the work instead of doing it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from blender.call_context import current_context


class Turns:
    """For each piece of work, by its key, at most one thread that does it; safe for many threads."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Future[None]] = {}
        self._lock = threading.Lock()

    def take(self, key: Hashable, work: Callable[[], None], stalled: Callable[[], str]) -> bool:
        """Do the work and return True; or wait until the thread that does it has ended, and return False.

        The work may have failed in the other thread, whose error is raised there alone. The wait ends with
        the current call: it raises Stalled with the sentence of `stalled`, or the reason of a cancellation.
        """
        own: Future[None] = Future()
        try:
            with self._lock:
                running = self._running.setdefault(key, own)
            if running is own:
                work()
        finally:  # also where an interrupt came before `work`
            with self._lock:
                if self._running.get(key) is own:
                    del self._running[key]
            own.set_result(None)
        if running is own:
            return True
        current_context().result(running, stalled)
        return False
