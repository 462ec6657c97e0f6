"""Whoever waits for rows: until when, and whether it is still there.

    call = CallContext(timeout_s=60)
    call.check()                                          # between two pieces of work
    call.check_deadline(lambda: "12 of 2,000 sources ...")         # the same, where the time counts too
    call.wait(0.5, lambda: "Source `wiki` has 4 rows ...")    # instead of time.sleep
    call.result(future, lambda: "Source `wiki` ...")          # instead of future.result()
    with use_context(call): ...                         # code below finds it with `current_context`

Everything below a fetch that can take long waits through its call, so no wait outlasts the call: it ends
with `Stalled` and the sentence of what was waited for when the time is over, and with the reason given to
`leave` as soon as the caller has left.
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
    """What this thread does inside is waited for by `caller`; native code in between cannot hand it on."""
    before, _HERE.call = current_context(), caller
    try:
        yield
    finally:
        _HERE.call = before


def current_context() -> CallContext:
    """Who waits for what this thread does; one that waits for ever where nobody said."""
    found: CallContext | None = getattr(_HERE, "caller", None)
    return found or CallContext()


def within_deadline(items: Sequence[Value], done: str) -> Iterator[Value]:
    """Each of `items`, as long as the waiting caller is there and its time lasts.

    Raises the reason of a caller who has left, and Stalled with how many of them are `done`.
    """
    call = current_context()
    for number, item in enumerate(items):
        call.check_deadline(partial(_out_of_time, number, len(items), done))
        yield item


def _out_of_time(number: int, n_items: int, done: str) -> str:
    return (
        f"The time of the call was over with {number:,} of {n_items:,} {done}. Nothing was kept; give the "
        "call more time, or ask for less."
    )


class CallContext:
    """One that waits at most `timeout_s` from now, for ever by default; safe for many threads."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self._changed = threading.Condition()
        self._left: FactoryError | None = None
        self.set_timeout(timeout_s)

    def set_timeout(self, timeout_s: float | None) -> None:
        """Wait at most `timeout_s` from now, for ever where it is None."""
        self._until = math.inf if timeout_s is None else time.monotonic() + timeout_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the time is over, zero when it is, `inf` where there is no end."""
        return max(0.0, self._until - time.monotonic())

    def cancel(self, reason: FactoryError) -> None:
        """End every wait, those to come too, by raising `reason`; the first reason stays."""
        with self._changed:
            self._left = self._left or reason
            self._changed.notify_all()

    def check(self) -> None:
        """Raise the reason of one who has left."""
        if self._left is not None:
            raise self._left

    def check_deadline(self, stalled: Callable[[], str]) -> None:
        """Raise the reason of one who has left, and Stalled with `stalled` once the time is over."""
        self.check()
        if self.remaining_s <= 0:
            raise Stalled(stalled())

    def wait(self, seconds: float, stalled: Callable[[], str]) -> None:
        """Sleep for `seconds`; raises Stalled with the sentences of `stalled` where the time ends before."""
        end = time.monotonic() + seconds
        with self._changed:
            while (left := end - time.monotonic()) > 0:
                self._sleep(left, stalled)
            self.check()

    def result(self, future: Future[Value], stalled: Callable[[], str]) -> Value:
        """The result of `future`; raises what it raised, and Stalled where the time ends before."""
        if not future.done():
            future.add_done_callback(self._wake)
            with self._changed:
                while not future.done():
                    self._sleep(math.inf, stalled)
        return future.result()

    def _sleep(self, seconds: float, stalled: Callable[[], str]) -> None:
        """Sleep until something may have changed, with the lock held by the caller."""
        self.check_deadline(stalled)
        shortest = min(seconds, self.remaining_s)
        self._changed.wait(None if math.isinf(shortest) else shortest)

    def _wake(self, _: object) -> None:
        with self._changed:
            self._changed.notify_all()
