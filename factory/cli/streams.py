"""Keep the stack traces of other threads off the terminal once the JVM is dead."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from factory.spark.session import jvm_died

_DYING_S = 0.1  # from the end of a JVM's connections to the end of its process


class OfThisThread:
    """A stream that passes its creator thread's writes, and drops other threads' writes while `deaf`."""

    def __init__(self, stream: TextIO, deaf: Callable[[], bool] = lambda: True) -> None:
        self._stream, self._deaf, self._writer = stream, deaf, threading.get_ident()

    def write(self, text: str) -> int:
        """Write or drop `text`; return its length."""
        if threading.get_ident() != self._writer and self._deaf():
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def no_traces_of_a_dead_jvm() -> Iterator[None]:
    """Drop other threads' writes to stderr once the JVM is dead, for good: they notice one by one."""
    before = sys.stderr
    sys.stderr = OfThisThread(before, lambda: jvm_died(within_s=_DYING_S))
    try:
        yield
    finally:
        if not jvm_died():
            sys.stderr = before
