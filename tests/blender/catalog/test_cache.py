"""The shared cache: within its capacity, and one maker for many threads."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from blender.catalog.cache import SharedCache
from blender.errors import CallCancelled, Stalled
from factory.errors import FactoryError


def test_the_least_recently_used_value_goes_first() -> None:
    cache: SharedCache[str] = SharedCache(2)
    for key in "ab":
        cache.get(key, lambda key=key: key)
    cache.get("a", lambda: "unused")
    cache.get("c", lambda: "c")  # three are too many: b goes, not a
    assert cache.get("a", lambda: "made again") == "a"
    assert cache.get("b", lambda: "new") == "new"


def test_many_threads_that_want_one_value_have_it_made_once() -> None:
    cache: SharedCache[int] = SharedCache(10)
    made = []

    def make() -> int:
        made.append(1)
        time.sleep(0.05)
        return 7

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda _: cache.get("key", make), range(16))) == [7] * 16
    assert len(made) == 1


class Key:
    """A key that records the threads that look it up, which they do under the cache's lock."""

    def __init__(self) -> None:
        self.asking: set[int] = set()

    def __hash__(self) -> int:
        self.asking.add(threading.get_ident())
        return 0

    def wait_for_two(self) -> None:
        end = time.monotonic() + 60
        while len(self.asking) < 2 and time.monotonic() < end:
            time.sleep(0.001)


def test_a_failure_reaches_all_who_wait_and_is_tried_again_after() -> None:
    cache: SharedCache[int] = SharedCache(10)
    key, made = Key(), []

    def fail() -> int:
        made.append(1)
        key.wait_for_two()
        raise OSError("gone")

    def ask(_: int) -> str:
        with pytest.raises(OSError, match="gone"):
            cache.get(key, fail)
        return "failed"

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, range(2))) == ["failed", "failed"]
    assert (len(key.asking), len(made)) == (2, 1)
    assert cache.get(key, lambda: 3) == 3


@pytest.mark.parametrize("error", [CallCancelled, Stalled])
def test_a_maker_who_leaves_fails_nobody_else(error: type[FactoryError]) -> None:
    cache: SharedCache[int] = SharedCache(10)
    key, began = Key(), threading.Event()

    def leave() -> int:
        began.set()
        key.wait_for_two()
        raise error("The first has left.")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.get, key, leave)
        began.wait(60)
        second = pool.submit(cache.get, key, lambda: 3)
        assert isinstance(first.exception(60), error)
        assert second.result(60) == 3
    assert len(key.asking) == 2
