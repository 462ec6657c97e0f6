"""A cache in which threads that want the same value share one attempt to make it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

from blender.errors import CallCancelled, Stalled

Value = TypeVar("Value")


class SharedCache(Generic[Value]):
    """At most `capacity` values by key; the least recently used are dropped.

    A failure reaches every waiting thread and is not kept, with one exception: if the making call is
    cancelled or late, a waiting thread makes the value instead. Values in the making do not count.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._in_making: dict[Hashable, Future[Value]] = {}

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, made by `make` unless it is kept."""
        while True:
            with self._lock:
                if key in self._values:
                    self._values.move_to_end(key)
                    return self._values[key]
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

    def _make(self, key: Hashable, make: Callable[[], Value], future: Future[Value]) -> None:
        try:
            value = make()
        except BaseException as error:  # raised where the value is awaited
            with self._lock:
                del self._in_making[key]
            future.set_exception(error)
            return
        with self._lock:
            del self._in_making[key]
            self._values[key] = value
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
        future.set_result(value)
