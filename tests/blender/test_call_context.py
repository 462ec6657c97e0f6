"""Waits end at the deadline or when the caller cancels."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from blender.call_context import CallContext
from blender.catalog.blends import Blends
from blender.errors import CallCancelled, Stalled
from blender.records import Source
from blender.rows.counts import COUNTS, WAIT_S, Counts
from blender.spec.step_range import StepRange


def waited_for() -> str:
    return "Source `wiki` has 4 rows and 8 are needed."


def test_a_wait_within_the_time_returns() -> None:
    began = time.monotonic()
    CallContext(timeout_s=60).wait(0.05, waited_for)
    assert 0.05 <= time.monotonic() - began < 30


@pytest.mark.parametrize("wait", ["wait", "result"])
def test_a_wait_beyond_the_time_says_what_was_waited_for(wait: str) -> None:
    call = CallContext(timeout_s=0.05)
    began = time.monotonic()
    with pytest.raises(Stalled, match="Source `wiki` has 4 rows"):
        call.wait(60, waited_for) if wait == "wait" else call.result(Future(), waited_for)
    assert time.monotonic() - began < 30
    assert call.remaining_s == 0


@pytest.mark.parametrize("wait", ["wait", "result"])
def test_cancelling_ends_every_wait_with_the_first_reason(wait: str) -> None:
    call = CallContext()
    threading.Timer(0.05, call.cancel, [CallCancelled("gone")]).start()
    began = time.monotonic()
    with pytest.raises(CallCancelled, match="gone"):
        call.wait(60, waited_for) if wait == "wait" else call.result(Future(), waited_for)
    assert time.monotonic() - began < 30
    call.cancel(CallCancelled("again"))
    for later in (call.check, lambda: call.wait(0, waited_for)):
        with pytest.raises(CallCancelled, match="gone"):
            later()


def test_results_and_errors_of_another_thread_arrive() -> None:
    call, good, bad = CallContext(timeout_s=60), Future[int](), Future[int]()
    threading.Timer(0.05, good.set_result, [7]).start()
    assert call.result(good, waited_for) == 7
    bad.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        call.result(bad, waited_for)


@pytest.mark.parametrize("wait", ["wait", "result"])
def test_a_child_ends_with_its_parent_and_not_the_other_way_round(wait: str) -> None:
    parent = CallContext(timeout_s=60)
    one, other = parent.child(), parent.child()
    one.cancel(CallCancelled("one alone"))
    with pytest.raises(CallCancelled, match="one alone"):
        one.check()
    parent.check()
    other.check()
    began = time.monotonic()
    threading.Timer(0.05, parent.cancel, [CallCancelled("all of it")]).start()
    with pytest.raises(CallCancelled, match="all of it"):
        other.wait(60, waited_for) if wait == "wait" else other.result(Future(), waited_for)
    assert time.monotonic() - began < 30


def test_a_child_has_the_earlier_deadline() -> None:
    parent = CallContext(timeout_s=60)
    child = parent.child()
    assert 0 < child.remaining_s <= 60
    child.set_timeout(0)
    assert child.remaining_s == 0 < parent.remaining_s
    child.set_timeout(None)
    parent.set_timeout(0)
    with pytest.raises(Stalled, match="Source `wiki` has 4 rows"):
        child.wait(60, waited_for)


def test_a_cancelled_fetch_ends_and_counts_its_wait(blends: Blends) -> None:
    source = Source(table="packed.code", weight=2000, oversample=True)
    call = CallContext()
    blend = blends.open(blends.create([source]).id)
    before = COUNTS.sums().get((WAIT_S, "packed.code"), 0.0)
    blocks = blend.fetch(StepRange(), call=call)
    next(blocks)
    assert COUNTS.sums()[WAIT_S, "packed.code"] > before
    call.cancel(CallCancelled("gone"))
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
