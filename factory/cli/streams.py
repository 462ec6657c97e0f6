"""Whose words reach a terminal: threads that find their JVM dead say so with traces, and are not heard."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from factory.spark import jvm_died

_DYING_S = 0.1  # between the end of a JVM's connections and its own


class OfThisThread:
    """A stream that takes what the thread that made it writes, and drops what others do while `deaf`."""

    def __init__(self, stream: TextIO, deaf: Callable[[], bool] = lambda: True) -> None:
        self._stream, self._deaf, self._writer = stream, deaf, threading.get_ident()

    def write(self, text: str) -> int:
        """Write `text`, or nothing; the length of `text`."""
        if threading.get_ident() != self._writer and self._deaf():
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def no_traces_of_a_dead_jvm() -> Iterator[None]:
    """Drop what other threads write to stderr once the JVM is dead, for good: they find out one by one."""
    before = sys.stderr
    sys.stderr = OfThisThread(before, lambda: jvm_died(within_s=_DYING_S))
    try:
        yield
    finally:
        if not jvm_died():
            sys.stderr = before
