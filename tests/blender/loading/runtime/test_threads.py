"""A role behind a queue answers in order, blocks nobody longer than his call, and ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from blender.call_context import CallContext, current_context, use_context
from blender.errors import BlenderFailure, CallCancelled, Stalled
from blender.loading.runtime.threads import Mailbox


class Echo:
    """A role that waits for `gate` before each answer."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.seen: list[int] = []

    def say(self, word: int) -> int:
        """The word, once the gate is open."""
        assert self.gate.wait(10)
        self.seen.append(word)
        return word

    def fail(self) -> None:
        """An error of the role."""
        raise ValueError("no rows")

    def exit(self) -> None:
        """What a role must not do."""
        raise SystemExit(3)

    def seconds_left(self) -> float:
        """The time of the call that the role works for."""
        return current_context().remaining_s


@pytest.fixture
def echo() -> Iterator[tuple[Echo, Mailbox]]:
    role = Echo()
    mailbox = Mailbox(role, "echo", queue=2)
    yield role, mailbox
    role.gate.set()
    mailbox.close()


def test_messages_are_answered_in_their_order(echo: tuple[Echo, Mailbox]) -> None:
    role, mailbox = echo
    answers: list[Future[int]] = [mailbox.ask("say", word) for word in (1, 2)]
    role.gate.set()
    assert [answer.result(10) for answer in answers] == [1, 2] == role.seen


def test_an_error_of_the_role_is_raised_where_the_answer_is_awaited(echo: tuple[Echo, Mailbox]) -> None:
    _, mailbox = echo
    with pytest.raises(ValueError, match="no rows"):
        mailbox.result("fail")
    assert mailbox.result("seconds_left") == float("inf")  # the role lives on


def test_a_role_that_exits_does_not_end_its_caller(echo: tuple[Echo, Mailbox]) -> None:
    _, mailbox = echo
    with pytest.raises(BlenderFailure, match="The echo of the loader raised SystemExit: 3"):
        mailbox.result("exit")
    assert mailbox.result("seconds_left") == float("inf")


def test_the_role_works_for_the_call_of_who_asked(echo: tuple[Echo, Mailbox]) -> None:
    _, mailbox = echo
    with use_context(CallContext(30)):
        assert 20 < mailbox.result("seconds_left") <= 30
    assert 4 < mailbox.ask("seconds_left", call=CallContext(5)).result(10) <= 5


@pytest.mark.parametrize("queued", [0, 3])
def test_a_wait_for_an_answer_or_for_room_ends_with_the_call(echo: tuple[Echo, Mailbox], queued: int) -> None:
    _, mailbox = echo
    for word in range(queued):  # one is worked on, two fill the queue
        mailbox.ask("say", word)
    began = time.monotonic()
    with (
        use_context(CallContext(0.2)),
        pytest.raises(Stalled, match="The echo of the loader did not answer"),
    ):
        mailbox.result("say", 9)
    assert time.monotonic() - began < 5


def test_a_cancelled_call_stops_waiting_and_its_message_is_not_worked_off(
    echo: tuple[Echo, Mailbox],
) -> None:
    role, mailbox = echo
    call = CallContext()
    mailbox.ask("say", 0)
    with use_context(call):
        answer = mailbox.ask("say", 1)
        call.cancel(CallCancelled("The rank went away."))
        with pytest.raises(CallCancelled, match="The rank went away"):
            mailbox.result("say", 2)
    role.gate.set()
    with pytest.raises(CallCancelled):
        answer.result(10)
    assert mailbox.result("say", 3) == 3
    assert role.seen == [0, 3]


def test_a_hint_is_dropped_where_there_is_no_room(echo: tuple[Echo, Mailbox]) -> None:
    role, mailbox = echo
    for word in range(3):
        mailbox.ask("say", word)
    assert mailbox.hint("say", 9, call=CallContext()) is None
    role.gate.set()
    assert mailbox.result("say", 4) == 4
    hinted = mailbox.hint("say", 5, call=CallContext())
    assert hinted is not None
    assert hinted.result(10) == 5
    assert role.seen == [0, 1, 2, 4, 5]


def test_closing_cancels_what_waits_and_ends_the_threads() -> None:
    role = Echo()
    mailbox = Mailbox(role, "echo", threads=2)
    working = [mailbox.ask("say", word) for word in range(2)]
    while not mailbox._messages.empty():
        time.sleep(0.01)
    waiting = mailbox.ask("say", 2)
    threading.Timer(0.2, role.gate.set).start()
    mailbox.close()
    assert sorted(answer.result(0) for answer in working) == [0, 1]
    with pytest.raises(CallCancelled, match="closed"):
        waiting.result(0)
    assert not any(thread.is_alive() for thread in mailbox._threads)
