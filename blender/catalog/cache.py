"""A cache under a budget in which threads that want the same value share one attempt to make it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from blender.errors import CallCancelled, Stalled

Value = TypeVar("Value")


class SharedCache(Generic[Value]):
    """Values by key; the least recently used are dropped when their costs exceed `budget`.

    A value that costs more than the whole budget is returned and not kept. A failure reaches every waiting
    thread and is not kept, with one exception: if the making call is cancelled or late, a waiting thread
    makes the value instead. Values in the making do not count.
    """

    def __init__(self, budget: int, cost: Callable[[Value], int] = lambda _: 1) -> None:
        self.budget = budget
        self._cost_of = cost
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._in_making: dict[Hashable, Future[Value]] = {}
        self._used = 0

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made by `make` unless it is kept."""
        while True:
            with self._lock:
                kept = self._values.get(key)
                if kept is not None:
                    self._values.move_to_end(key)
                    return kept[0]
                future = self._in_making.get(key)
                mine = future is None
                if future is None:
                    future = self._in_making[key] = Future()
            if mine:
                self._make(key, make, future)
            try:
                return future.result()
            except (CallCancelled, Stalled):
                if mine:
                    raise

    @property
    def used(self) -> int:
        """The cost of the kept values."""
        with self._lock:
            return self._used

    def _make(self, key: Hashable, make: Callable[[], Value], future: Future[Value]) -> None:
        try:
            value = make()
        except BaseException as error:
            with self._lock:
                del self._in_making[key]
            future.set_exception(error)
            return
        with self._lock:
            del self._in_making[key]
            self._keep(key, value)
        future.set_result(value)

    def _keep(self, key: Hashable, value: Value) -> None:
        cost = self._cost_of(value)
        if cost > self.budget:
            return
        self._values[key] = (value, cost)
        self._used += cost
        while self._used > self.budget:
            _, (_, freed) = self._values.popitem(last=False)
            self._used -= freed
