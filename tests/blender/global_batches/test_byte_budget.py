"""A budget of bytes that slices share."""

from __future__ import annotations

from blender.global_batches.byte_budget import ByteBudget


def test_a_request_is_granted_once_it_fits() -> None:
    budget = ByteBudget(10)
    assert budget.request(6).done()
    assert budget.request(4).done()
    waiting = budget.request(5)
    budget.release(4)
    assert (waiting.done(), budget.used) == (False, 6)
    budget.release(1)
    assert (waiting.done(), budget.used) == (True, 10)


def test_a_request_above_the_limit_waits_to_be_alone() -> None:
    budget = ByteBudget(10)
    assert budget.request(11).done()
    waiting = budget.request(12)
    assert not waiting.done()
    budget.release(11)
    assert (waiting.done(), budget.used) == (True, 12)
