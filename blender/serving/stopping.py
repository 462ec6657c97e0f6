"""When a process is told to stop: by signals, or by one of its own threads.

A handler that set a `threading.Event` could wait for the lock of the very wait it interrupts, and a signal
that another thread receives just before the main thread begins to wait would wake nobody. Here a signal
writes a byte into a pipe, at once and in whichever thread, and who waits reads the pipe.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

GRACE_S = 10.0
"""The calls under way have so long to end where nothing else is said."""


class AtOnce(BaseException):
    """A second signal to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stopping:
    """Set once and for good, by `set` from any thread or by signals; one for the life of a process."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)  # as signal.set_wakeup_fd asks
        self._signals = 0

    def on(self, *numbers: signal.Signals) -> None:
        """Be set by a first of these signals; a second raises AtOnce in the main thread, which calls this.

        Any other signal with a handler in Python would set it too.
        """
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, self._count)

    def set(self) -> None:
        """Tell every wait, under way or to come."""
        with contextlib.suppress(BlockingIOError):  # a full pipe is set
            os.write(self._write, b"\0")

    def is_set(self) -> bool:
        """Whether somebody has told to stop."""
        return self.wait(0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is set, at most `timeout_s`; whether it is."""
        return bool(select.select([self._read], [], [], timeout_s)[0])

    def _count(self, number: int, _: object) -> None:
        self._signals += 1
        if self._signals > 1:
            raise AtOnce(number)
