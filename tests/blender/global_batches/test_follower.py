"""Work that the threads of a follower want done is done by one of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from blender.call_context import CallContext, use_context
from blender.errors import Stalled
from blender.global_batches.follower import Turns


def nothing() -> None:
    """Work that is done at once."""


def stalled() -> str:
    return "The work took too long."


def test_others_wait_for_the_thread_that_works_until_their_deadline() -> None:
    turns, begun, goes_on = Turns(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert goes_on.wait(10)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(turns.take, "a", work, stalled)
        assert begun.wait(10)
        assert turns.take("b", nothing, stalled)
        with use_context(CallContext(timeout_s=0.05)), pytest.raises(Stalled, match="took too long"):
            turns.take("a", nothing, stalled)
        second = pool.submit(turns.take, "a", nothing, stalled)
        goes_on.set()
        assert first.result(10)
        second.result(10)
    assert turns.take("a", nothing, stalled)


def test_an_error_or_an_interrupt_leaves_the_work_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns()
    with pytest.raises(ZeroDivisionError):
        turns.take("a", lambda: print(1 / 0), stalled)
    assert turns.take("a", nothing, stalled)

    class Interrupting:
        """A lock whose first release is interrupted: the turn is taken, and the work not yet begun."""

        def __init__(self) -> None:
            self.interrupts = 1

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            self.interrupts -= 1
            if self.interrupts == 0:
                raise KeyboardInterrupt

    monkeypatch.setattr(turns, "_lock", Interrupting())
    with pytest.raises(KeyboardInterrupt):
        turns.take("a", nothing, stalled)
    with use_context(CallContext(timeout_s=5)):
        assert turns.take("a", nothing, stalled)
