"""What a server looks after each second: waits that last too long, and memory that nobody uses any more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from blender.serving.allocator import give_back_memory

_EVERY_S = 1.0
_MANY = 16  # calls that leave enough behind to give it back at once
_LEFT_SHARE = 0.5  # of the most calls there were: with so few, what the others left is not used again soon
_GIVE_BACK_S = 60.0  # what blocks under way need again then is some thousand page faults


class Upkeep:
    """Calls `sweep` each second; gives memory back each minute, and once most of many calls have ended."""

    def __init__(self, sweep: Callable[[], None], open_calls: Callable[[], int]) -> None:
        self._sweep, self._open_calls = sweep, open_calls
        self._most, self._given_back = 0, time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="blender-upkeep", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, where it has begun."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._sweep()
            self._give_back(self._open_calls())

    def _give_back(self, calls: int) -> None:
        self._most = max(self._most, calls)
        most_ended = self._most >= _MANY and calls <= _LEFT_SHARE * self._most
        if most_ended or time.monotonic() - self._given_back > _GIVE_BACK_S:
            give_back_memory()
            self._most, self._given_back = calls, time.monotonic()
