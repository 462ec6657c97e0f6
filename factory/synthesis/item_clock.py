"""The time that an item takes, measured by the process that started its worker.

The worker counts its items in a file that both processes have open, and its starter looks whether the count
moves. So an item that never lets another thread run is seen too, and the time in which a worker is stopped
does not count.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

_COUNT = struct.Struct("<q")
_REST = 0
_MOST_STEP_S = 2.0  # between two looks; a longer time was a stop of the machine, or of the starter


@dataclass
class ItemCounter:
    """Shows in a file which item a worker is at; shows nothing without a file."""

    descriptor: int | None = None
    _count: int = _REST

    def begin(self) -> None:
        """Show that the worker begins an item."""
        self._count += 1
        self._show(self._count)

    def rest(self) -> None:
        """Show that the worker is at no item."""
        self._show(_REST)

    def _show(self, count: int) -> None:
        if self.descriptor is not None:
            os.pwrite(self.descriptor, _COUNT.pack(count), 0)


@dataclass
class ItemClock:
    """The seconds that a worker has been at its item, as far as `look` has seen it run."""

    clock: Callable[[], float] = time.monotonic
    file: IO[bytes] = field(default_factory=tempfile.TemporaryFile)
    seconds: float = 0.0
    _count: int = _REST

    def __post_init__(self) -> None:
        self._last_s = self.clock()

    def look(self, *, is_stopped: bool) -> float:
        """Return the seconds of the item; those since the last look do not count for a stopped worker."""
        now_s = self.clock()
        step_s, self._last_s = min(now_s - self._last_s, _MOST_STEP_S), now_s
        content = os.pread(self.file.fileno(), _COUNT.size, 0)
        count = _COUNT.unpack(content)[0] if len(content) == _COUNT.size else _REST
        if count != self._count or count == _REST:
            self._count, self.seconds = count, 0.0
        elif not is_stopped:
            self.seconds += step_s
        return self.seconds

    def close(self) -> None:
        """Close the file."""
        self.file.close()
