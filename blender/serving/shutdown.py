"""When a process has to stop: on a signal, or at the request of one of its own threads.

A signal handler that set a `threading.Event` could deadlock on the lock of the very wait it interrupts, and a
signal delivered to another thread just before the main thread begins to wait would wake nobody. Here a signal
writes a byte into a pipe, immediately and in any thread, and the waiting thread polls the pipe.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

GRACE_S = 10.0
"""How long calls under way may go on after the process was told to stop, by default."""


class ForcedExit(BaseException):
    """A second signal to stop arrived."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ShutdownSignal:
    """Set once and for good, by `set` from any thread or by signals; one per process."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)  # `signal.set_wakeup_fd` requires it
        self._signals = 0

    def install(self, *numbers: signal.Signals) -> None:
        """Set this on the first of these signals; a second raises ForcedExit in the main thread.

        Call it from the main thread. Any other signal that has a Python handler sets it too.
        """
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, self._count)

    def set(self) -> None:
        """Wake every wait, present and future."""
        with contextlib.suppress(BlockingIOError):  # a full pipe is set
            os.write(self._write, b"\0")

    def is_set(self) -> bool:
        """Whether the process has to stop."""
        return self.wait(0)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until set, at most `timeout_s`; return whether it is set."""
        return bool(select.select([self._read], [], [], timeout_s)[0])

    def _count(self, number: int, _: object) -> None:
        self._signals += 1
        if self._signals > 1:
            raise ForcedExit(number)
