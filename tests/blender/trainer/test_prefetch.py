"""A prefetching thread: the same items, within a budget, and ended when nobody reads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.trainer.prefetch import Prefetcher
from tests.blender.programs import eventually


class Counted:
    """The numbers from 0 on, and how many were made."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.made = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.n):
            self.made += 1
            yield number


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=50), st.integers(0, 40))
def test_every_item_comes_once_in_order(items: list[int], budget: int) -> None:
    assert list(Prefetcher(items, budget, size=lambda item: item)) == items


def test_it_stops_at_the_budget_and_goes_on_when_one_is_taken() -> None:
    items = Counted(100)
    with Prefetcher(items, budget=30, size=lambda _: 10) as ahead:
        assert eventually(lambda: items.made == 3)
        time.sleep(0.05)
        assert items.made == 3
        assert next(ahead) == 0
        assert eventually(lambda: items.made == 4)
        assert list(ahead) == list(range(1, 100))


def test_an_item_above_the_budget_still_comes() -> None:
    items = Counted(3)
    with Prefetcher(items, budget=5, size=lambda _: 10) as ahead:
        assert eventually(lambda: items.made == 1)
        assert list(ahead) == [0, 1, 2]


def test_an_error_comes_after_the_items_before_it_and_once() -> None:
    def failing() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("the third")

    ahead = Prefetcher(failing(), 100, size=lambda _: 1)
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(ahead)
    assert list(ahead) == []


def running() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "blender-prefetch"}


def test_its_thread_ends_when_closed_or_unreferenced() -> None:
    before = running()
    closed, dropped = (Prefetcher(Counted(100), 3, size=lambda _: 1) for _ in range(2))
    next(closed), next(dropped)
    assert len(running() - before) == 2
    closed.close()
    assert list(closed) == []
    del dropped
    gc.collect()
    assert eventually(lambda: not running() - before)


def test_closing_wakes_an_iterator_that_waits() -> None:
    woken = threading.Event()

    def waiting() -> Iterator[int]:
        yield 1
        assert woken.wait(60)

    before = running()
    ahead = Prefetcher(waiting(), 10, size=lambda _: 1, cancel=woken.set)
    assert next(ahead) == 1
    ahead.close()
    assert woken.is_set()
    assert eventually(lambda: not running() - before)


COLLECTED = """
import time
from pathlib import Path

from blender.trainer.prefetch import Prefetcher

def items(ending):
    yield 1
    time.sleep(0.3)
    ending.write_text("ended")

next(Prefetcher(items(Path("ending")), 10, size=lambda _: 1))
"""


def test_a_process_waits_for_the_thread_of_a_collected_one(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", COLLECTED], cwd=tmp_path, env=os.environ, check=True)
    assert (tmp_path / "ending").read_text() == "ended"
