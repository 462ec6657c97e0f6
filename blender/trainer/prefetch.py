"""An iterator's items, produced ahead of the reader by a thread within a budget.

The thread sleeps while the finished items reach the budget; it always produces one item of any size. An
error of the iterator is raised after the items before it.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_OPEN: weakref.WeakSet[Prefetcher] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # also of those that are collected
_END_S = 5.0


class Prefetcher(Generic[T]):
    """An iterator over `items`; `close`, or the end of a `with`, stops its thread.

    `size` returns an item's part of `budget`. `cancel` interrupts a wait of the iterator from another thread;
    without it the thread stops after its current item.
    """

    def __init__(
        self,
        items: Iterable[T],
        budget: int,
        size: Callable[[T], int],
        cancel: Callable[[], None] = lambda: None,
    ) -> None:
        self._queue: _Queue[T] = _Queue(budget)
        self._cancel = cancel
        # The thread holds only the queue, so that an unreferenced `Prefetcher` is collected while it runs.
        thread = threading.Thread(
            target=_fill, args=(self._queue, items, size), name="blender-prefetch", daemon=True
        )
        thread.start()
        _OPEN.add(self)
        _THREADS.add(thread)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self._queue.take()

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, and drop the finished items."""
        self._queue.close()
        self._cancel()

    def __del__(self) -> None:
        self.close()


@atexit.register
def _end_all() -> None:
    """Stop every thread before the interpreter shuts down.

    A thread frozen inside gRPC would hold locks that the rest of the shutdown waits for, and one inside C++
    would end the process with "terminate called without an active exception".
    """
    for prefetcher in list(_OPEN):
        prefetcher.close()
    until = time.monotonic() + _END_S
    for thread in list(_THREADS):
        thread.join(max(0.0, until - time.monotonic()))


class _Queue(Generic[T]):
    """Finished items, oldest first, then the end or an error."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._changed = threading.Condition()
        self._made: deque[tuple[T, int]] = deque()
        self._held = 0
        self._closed = False
        self._ended = False
        self._error: BaseException | None = None

    def put(self, item: T, size: int) -> bool:
        """Add an item and wait for room for the next; False once the queue is closed."""
        with self._changed:
            self._made.append((item, size))
            self._held += size
            self._changed.notify_all()
            while self._held >= self._budget and self._made and not self._closed:
                self._changed.wait()
            return not self._closed

    def end(self, error: BaseException | None) -> None:
        """Mark the end of the items, or their error."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def take(self) -> T:
        """The next item; raises the error of the items once, then StopIteration."""
        with self._changed:
            while not self._made and not self._ended and not self._closed:
                self._changed.wait()
            if self._made:
                item, size = self._made.popleft()
                self._held -= size
                self._changed.notify_all()
                return item
            error, self._error = self._error, None
            try:
                raise error or StopIteration
            finally:
                del error  # the traceback would keep the error and its frames alive

    def close(self) -> None:
        """Drop everything and let the thread stop."""
        with self._changed:
            self._closed = True
            self._made.clear()
            self._changed.notify_all()


def _fill(queue: _Queue[T], items: Iterable[T], size: Callable[[T], int]) -> None:
    try:
        for item in items:
            if not queue.put(item, size(item)):
                break
    except BaseException as error:  # raised where the items are taken
        queue.end(error)
    else:
        queue.end(None)
