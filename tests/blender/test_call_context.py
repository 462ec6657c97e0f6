"""Waits that end with the time or with the caller."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from blender.call_context import Caller
from blender.catalog.blends import Blends
from blender.errors import CallCancelled, Stalled
from blender.records import Source
from blender.rows.counts import COUNTS, WAIT_S, Counts


def waited_for() -> str:
    return "Source `wiki` has 4 rows and 8 are needed."


def test_a_wait_within_the_time_returns() -> None:
    began = time.monotonic()
    Caller(timeout_s=60).wait(0.05, waited_for)
    assert 0.05 <= time.monotonic() - began < 30


@pytest.mark.parametrize("wait", ["wait", "result"])
def test_a_wait_beyond_the_time_says_what_was_waited_for(wait: str) -> None:
    caller = Caller(timeout_s=0.05)
    began = time.monotonic()
    with pytest.raises(Stalled, match="Source `wiki` has 4 rows"):
        caller.wait(60, waited_for) if wait == "wait" else caller.result(Future(), waited_for)
    assert time.monotonic() - began < 30
    assert caller.remaining_s == 0


@pytest.mark.parametrize("wait", ["wait", "result"])
def test_one_who_leaves_ends_every_wait_at_once_with_the_first_reason(wait: str) -> None:
    caller = Caller()
    threading.Timer(0.05, caller.leave, [CallCancelled("gone")]).start()
    began = time.monotonic()
    with pytest.raises(CallCancelled, match="gone"):
        caller.wait(60, waited_for) if wait == "wait" else caller.result(Future(), waited_for)
    assert time.monotonic() - began < 30
    caller.leave(CallCancelled("again"))
    for later in (caller.check, lambda: caller.wait(0, waited_for)):
        with pytest.raises(CallCancelled, match="gone"):
            later()


def test_the_result_of_another_thread_arrives_and_so_does_its_error() -> None:
    caller, good, bad = Caller(timeout_s=60), Future[int](), Future[int]()
    threading.Timer(0.05, good.set_result, [7]).start()
    assert caller.result(good, waited_for) == 7
    bad.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        caller.result(bad, waited_for)


def test_a_fetch_ends_where_its_caller_left_and_counts_what_it_waited_for(blends: Blends) -> None:
    source = Source(table="packed.code", weight=2000, oversample=True)
    caller = Caller()
    blend = blends.open(blends.create([source]).id)
    before = COUNTS.sums().get((WAIT_S, "packed.code"), 0.0)
    blocks = blend.fetch(0, caller=caller)
    next(blocks)
    assert COUNTS.sums()[WAIT_S, "packed.code"] > before
    caller.leave(CallCancelled("gone"))
    with pytest.raises(CallCancelled):
        next(blocks)


def test_sums_of_many_threads_add_up() -> None:
    counts = Counts()
    threads = [
        threading.Thread(target=lambda: [counts.add("reads", "a.b") for _ in range(1000)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.sums() == {("reads", "a.b"): 8000.0}
