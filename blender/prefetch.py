"""Items of an iterator, made by a thread before they are asked for, under a budget.

The thread sleeps once what it has made and nobody has taken reaches the budget; one item is made ahead
however large it is. An error of the iterator comes after the items before it.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_OPEN: weakref.WeakSet[Prefetcher] = weakref.WeakSet()
_END_S = 5.0


class Prefetcher(Generic[T]):
    """An iterator over `items`; `close`, or the end of a `with`, ends its thread.

    `size` says what an item takes of `budget`. `cancel` wakes the iterator where it waits for something,
    from another thread; without it the thread ends with the item it is at.
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
        # The thread knows the queue alone: an `Prefetcher` that nobody holds is collected while it runs.
        self._thread = threading.Thread(
            target=_fill, args=(self._queue, items, size), name="blender-prefetch", daemon=True
        )
        self._thread.start()
        _OPEN.add(self)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        return self._queue.take()

    def __enter__(self) -> Prefetcher[T]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Make no more; what was made is dropped."""
        self._queue.close()
        self._cancel()

    def __del__(self) -> None:
        self.close()

    def end(self) -> None:
        """Close, and wait for the thread."""
        self.close()
        self._thread.join(_END_S)


@atexit.register
def _end_all() -> None:
    """End every thread while the interpreter is whole.

    A thread that is frozen where it stands, inside gRPC, holds locks that the rest of the shutdown waits for.
    """
    for ahead in list(_OPEN):
        ahead.end()


class _Queue(Generic[T]):
    """What was made and not taken, oldest first, then the end or an error."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._changed = threading.Condition()
        self._made: deque[tuple[T, int]] = deque()
        self._held = 0
        self._closed = False
        self._ended = False
        self._error: BaseException | None = None

    def put(self, item: T, size: int) -> bool:
        """Whether there is to be another, which is answered once there is room for it."""
        with self._changed:
            self._made.append((item, size))
            self._held += size
            self._changed.notify_all()
            while self._held >= self._budget and self._made and not self._closed:
                self._changed.wait()
            return not self._closed

    def end(self, error: BaseException | None) -> None:
        """There is nothing more, or there was an error."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def take(self) -> T:
        """The next; raises the error there was, and StopIteration from then on."""
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
                del error  # else it holds itself, by this frame of its traceback, and all it came through

    def close(self) -> None:
        """Drop everything and let the thread end."""
        with self._changed:
            self._closed = True
            self._made.clear()
            self._changed.notify_all()


def _fill(queue: _Queue[T], items: Iterable[T], size: Callable[[T], int]) -> None:
    try:
        for item in items:
            if not queue.put(item, size(item)):
                break
    except BaseException as error:  # it belongs to whoever takes the items
        queue.end(error)
    else:
        queue.end(None)
