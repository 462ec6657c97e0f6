"""A cache under a budget in which many threads that want the same thing wait for one of them to make it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from blender.errors import CallCancelled, Stalled

Value = TypeVar("Value")


class SharedCache(Generic[Value]):
    """Values by key, the least recently used dropped when their costs exceed `budget`.

    A value dearer than the whole budget is handed out and not kept. A failure reaches everyone who
    waited for that value and is not kept either, but for that of a maker whose caller left or ran out of
    time: one who waited makes the value then. Values being made are not counted.
    """

    def __init__(self, budget: int, cost: Callable[[Value], int] = lambda _: 1) -> None:
        self.budget = budget
        self._cost_of = cost
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._in_making: dict[Hashable, Future[Value]] = {}
        self._used = 0

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made by `make` where it is not kept."""
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
        """The cost of what is kept."""
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
