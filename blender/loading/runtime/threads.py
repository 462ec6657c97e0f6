"""Roles in threads of this process, each behind a bounded queue of its own.

    planner = Mailbox(PlannerRole(...), "planner")
    planner.ask("plan", 1_000).result()         # Plan
    planner.close()

A message waits for room in the queue, and its caller for the answer, no longer than the caller's call
(`blender.call_context`), so a slow role blocks neither another role nor a caller for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Full, Queue
from typing import Any

from blender.call_context import CallContext, current_context, use_context
from blender.errors import BlenderFailure, CallCancelled

QUEUE = 8  # messages that wait for a role
_LOOK_S = 0.05  # between looks at a call that waits for room, which may be cancelled meanwhile


@dataclass(frozen=True)
class _Message:
    answer: Future[Any]
    call: CallContext
    method: str
    arguments: tuple[Any, ...]


class Mailbox:
    """A role, its queue, and the threads that answer its messages in their order."""

    def __init__(self, role: object, name: str, threads: int = 1, queue: int = QUEUE) -> None:
        self._role, self.name = role, name
        self._messages: Queue[_Message | None] = Queue(queue)
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"loading-{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, method: str, *arguments: Any, call: CallContext | None = None) -> Future[Any]:
        """The answer of the role's method, made for `call`, by default the call of this thread.

        Raises Stalled if the queue has no room within the time of this thread's call, and the reason of a
        cancelled one.
        """
        message = _Message(Future(), call or current_context(), method, arguments)
        self._put(message, current_context())
        return message.answer

    def hint(self, method: str, *arguments: Any, call: CallContext) -> Future[Any] | None:
        """The answer made ahead for `call`; None if the queue is full."""
        if self._is_closed:
            raise self._closed()
        message = _Message(Future(), call, method, arguments)
        try:
            self._messages.put_nowait(message)
        except Full:
            return None
        return message.answer

    def result(self, method: str, *arguments: Any) -> Any:
        """The result of `ask`, waited for within the call's time; raises the method's errors."""
        answer = self.ask(method, *arguments)
        return current_context().result(answer, self._stalled(method))

    def close(self) -> None:
        """End the threads, and wait for their current messages; messages that wait are cancelled."""
        self.end()
        for thread in self._threads:
            thread.join()
        self._cancel_waiting()  # those that came meanwhile

    def end(self) -> None:
        """As `close`, without waiting."""
        self._is_closed = True
        self._cancel_waiting()
        for _ in self._threads:
            self._messages.put(None)

    def _cancel_waiting(self) -> None:
        with suppress(Empty):
            while True:
                message = self._messages.get_nowait()
                if message is not None:
                    message.answer.set_exception(self._closed())

    def _closed(self) -> CallCancelled:
        return CallCancelled(f"The {self.name} of the loader was closed. Open the loader again.")

    def _put(self, message: _Message, call: CallContext) -> None:
        while True:
            if self._is_closed:
                raise self._closed()
            call.check_deadline(self._stalled(message.method))
            try:
                return self._messages.put(message, timeout=min(_LOOK_S, call.remaining_s))
            except Full:
                continue

    def _stalled(self, method: str) -> Callable[[], str]:
        return lambda: (
            f"The {self.name} of the loader did not answer `{method}` in time. Ask again, or give the call "
            "more time."
        )

    def _work(self) -> None:
        while (message := self._messages.get()) is not None:
            try:
                with use_context(message.call):
                    message.call.check_deadline(self._stalled(message.method))
                    result = getattr(self._role, message.method)(*message.arguments)
            except Exception as error:  # raised where the answer is awaited
                message.answer.set_exception(error)
            except (
                BaseException
            ) as error:  # such as SystemExit of a strategy, which is not the caller's to end
                failure = BlenderFailure(
                    f"The {self.name} of the loader raised {type(error).__name__}: {error}"
                )
                failure.__cause__ = error
                message.answer.set_exception(failure)
            else:
                message.answer.set_result(result)
            del message
