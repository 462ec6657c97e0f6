"""The bytes that slices take, in flight or ready, within a limit.

room = budget.request(length)                   # of one thread; done once the bytes are counted in `used`
budget.release(length)                          # of any thread: the slice was taken
"""

from __future__ import annotations

import threading
from concurrent.futures import Future


class ByteBudget:
    """`used` of `limit` bytes. Requests come one after the other; one above the limit waits to be alone."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: tuple[int, Future[None]] | None = None
        self.used = 0

    def request(self, n_bytes: int) -> Future[None]:
        """Ask for bytes, once the request before was granted."""
        room: Future[None] = Future()
        with self._lock:
            assert self._waiting is None, "the request before was not granted"
            self._waiting = n_bytes, room
        self._grant()
        return room

    def release(self, n_bytes: int) -> None:
        """Give back bytes that were granted."""
        with self._lock:
            self.used -= n_bytes
        self._grant()

    def _grant(self) -> None:
        with self._lock:
            if self._waiting is None:
                return
            n_bytes, room = self._waiting
            if self.used and self.used + n_bytes > self._limit:
                return
            self.used += n_bytes
            self._waiting = None
        room.set_result(None)  # outside the lock: it wakes the thread that waits
