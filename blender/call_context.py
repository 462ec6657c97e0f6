"""The call that this thread works for: its deadline, and whether its caller still waits.

    call = CallContext(timeout_s=60)
    call.check()                                               # between two pieces of work
    call.check_deadline(lambda: "12 of 2,000 sources ...")     # the same, and the deadline too
    call.wait(0.5, lambda: "Source `wiki` has 4 rows ...")     # instead of time.sleep
    call.result(future, lambda: "Source `wiki` ...")           # instead of future.result()
    with use_context(call): ...                                # code below finds it with `current_context`
    call.child()                                               # for a part of it that may be cancelled alone

Slow code below a fetch waits through its call, so no wait outlasts the call. At the deadline the wait raises
`Stalled`, with a sentence that names its reason; a cancelled call raises the reason given to `cancel`
at once.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from blender.errors import Stalled
from factory.errors import FactoryError

Value = TypeVar("Value")

_HERE = threading.local()


@contextmanager
def use_context(call: CallContext) -> Iterator[None]:
    """Make `call` this thread's context: native code between two Python frames cannot pass it on."""
    before, _HERE.call = current_context(), call
    try:
        yield
    finally:
        _HERE.call = before


def current_context() -> CallContext:
    """The call that this thread works for; one without a deadline where none was set."""
    found: CallContext | None = getattr(_HERE, "call", None)
    return found or CallContext()


def within_deadline(items: Sequence[Value], done: str) -> Iterator[Value]:
    """Yield each of `items` until the current call is cancelled or its deadline passes.

    Raises the reason of the cancellation, or Stalled with the number of items that are `done`.
    """
    call = current_context()
    for number, message in enumerate(items):
        call.check_deadline(partial(_out_of_time, number, len(items), done))
        yield message


def _out_of_time(number: int, n_items: int, done: str) -> str:
    return (
        f"The time of the call was over with {number:,} of {n_items:,} {done}. Nothing was kept; give the "
        "call more time, or ask for less."
    )


class CallContext:
    """A call that may take `timeout_s` from now, any time by default; safe for many threads."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self._changed = threading.Condition()
        self._cancelled: FactoryError | None = None
        self.set_timeout(timeout_s)

    def child(self) -> CallContext:
        """A call that ends when this one does; its own `cancel` leaves this one alone."""
        return _Child(self)

    def set_timeout(self, timeout_s: float | None) -> None:
        """Move the deadline to `timeout_s` from now; None removes it."""
        self._until = math.inf if timeout_s is None else time.monotonic() + timeout_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline: zero once it has passed, `inf` without one."""
        return max(0.0, self._until - time.monotonic())

    def cancel(self, reason: FactoryError) -> None:
        """Make every wait raise `reason`, now and from now on; the first reason stays."""
        with self._changed:
            self._cancelled = self._cancelled or reason
            self._changed.notify_all()

    def check(self) -> None:
        """Raise the reason if the call was cancelled."""
        if self._cancelled is not None:
            raise self._cancelled

    def check_deadline(self, stalled: Callable[[], str]) -> None:
        """Raise the reason if the call was cancelled, and Stalled with `stalled` after the deadline."""
        self.check()
        if self.remaining_s <= 0:
            raise Stalled(stalled())

    def wait(self, seconds: float, stalled: Callable[[], str]) -> None:
        """Sleep for `seconds`; raises Stalled with the sentence of `stalled` at the deadline."""
        end = time.monotonic() + seconds
        with self._changed:
            while (left := end - time.monotonic()) > 0:
                self._sleep(left, stalled)
            self.check()

    def result(self, future: Future[Value], stalled: Callable[[], str]) -> Value:
        """The result of `future`; raises the future's error, and Stalled at the deadline."""
        if not future.done():
            future.add_done_callback(self._wake)
            with self._changed:
                while not future.done():
                    self._sleep(math.inf, stalled)
        return future.result()

    def _sleep(self, seconds: float, stalled: Callable[[], str]) -> None:
        """Sleep until something may have changed; the caller holds the lock."""
        self.check_deadline(stalled)
        shortest = min(seconds, self.remaining_s)
        self._changed.wait(None if math.isinf(shortest) else shortest)

    def _wake(self, _: object) -> None:
        with self._changed:
            self._changed.notify_all()


class _Child(CallContext):
    """Shares the condition of its parent, so that a cancelled parent wakes the waits of the child."""

    def __init__(self, parent: CallContext) -> None:
        super().__init__()
        self._parent = parent
        self._changed = parent._changed

    @property
    def remaining_s(self) -> float:
        return min(super().remaining_s, self._parent.remaining_s)

    def check(self) -> None:
        self._parent.check()
        super().check()
