"""Housekeeping once a second: end waits that last too long, return unused memory to the system."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from blender.serving.allocator import trim_memory

_EVERY_S = 1.0
_MANY = 16  # calls that leave enough memory behind to return it at once
_LEFT_SHARE = 0.5  # of the peak number of calls: at or below it, the freed memory is not needed soon
_TRIM_EVERY_S = 60.0  # blocks under way then cost some thousand page faults


class Upkeep:
    """Calls `sweep` every second; trims memory every minute, and once most of many calls have ended."""

    def __init__(self, sweep: Callable[[], None], open_calls: Callable[[], int]) -> None:
        self._sweep, self._open_calls = sweep, open_calls
        self._peak, self._trimmed_at = 0, time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blender-upkeep", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, if it was started."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._sweep()
            self._trim(self._open_calls())

    def _trim(self, calls: int) -> None:
        self._peak = max(self._peak, calls)
        most_ended = self._peak >= _MANY and calls <= _LEFT_SHARE * self._peak
        if most_ended or time.monotonic() - self._trimmed_at > _TRIM_EVERY_S:
            trim_memory()
            self._peak, self._trimmed_at = calls, time.monotonic()
