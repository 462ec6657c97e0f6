"""The calls a Blender answers at this moment: how many there may be, how long each may wait, who made it.

A call counts from its message on; before, it waits in a room (`blender.serving.admission`), as health checks
and reflection do, which are no such calls: whoever starts and stops servers is always answered. A call that
is one too many is refused at once, so that its client can ask elsewhere; nothing queues. But a call whose
answer nobody takes gives way: a stream that is not read would hold its thread for ever.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from dataclasses import dataclass

import grpc

from blender.call_context import CallContext
from blender.errors import Busy, CallCancelled, InvalidRequest
from blender.serving.client_identity import ClientOf, by_origin
from blender.serving.waiting_room import WAITS_ENDED
from factory.errors import FactoryError

_MARGIN_S, _MARGIN_SHARE = 0.5, 0.1  # kept of a client's deadline to tell it what was waited for


@dataclass(frozen=True)
class Limits:
    """What one server gives; None is no limit."""

    calls: int = 128
    """Calls at once. A stream is one as long as it lasts, and holds a thread."""
    calls_per_client: int | None = None
    """Calls at once of one client: one token, else one certificate, else one address."""
    steps: int | None = None
    """Steps a fetch may ask for."""
    wait_s: float = 60.0
    """Wait for the next rows, or for an answer, of a call that comes without a deadline of its own."""
    message_s: float = 10.0
    """Wait for the message of a call that has sent its headers."""
    untaken_s: float = 10.0
    """So long may an answer lie untaken before its call gives way, where there is no room for another."""
    explained_rows: int = 1 << 14
    """Rows of a step that is explained: its answer is one message."""

    def check_steps(self, steps: int) -> None:
        """Raise InvalidRequest for a fetch of more steps than a call may ask for; 0 is all there are."""
        if self.steps is not None and not 0 < steps <= self.steps:
            asked = f"{steps:,} steps were" if steps else "All steps up to the end of data were"
            raise InvalidRequest(
                f"{asked} asked for, and this Blender gives at most {self.steps:,} a call. Ask for fewer, "
                "and again from `next_offset` of the last block."
            )

    def check_explained(self, offset: int, rows: int) -> None:
        """Raise InvalidRequest for a step of too many rows to be explained in one answer."""
        if rows > self.explained_rows:
            raise InvalidRequest(
                f"Step {offset:,} has {rows:,} rows, and at most {self.explained_rows:,} are explained in "
                "one answer. Fetch it: the columns `source`, `ordinal` and `epoch` say what each row is."
            )


@dataclass
class _Open:
    """A call under way; `offered` is the moment its client was given something that it has not taken yet."""

    context: grpc.ServicerContext
    method: str
    client: str
    offered: float = math.inf


class CallLimiter:
    """The calls of all services under way; safe for many threads."""

    def __init__(self, limits: Limits, client_of: ClientOf = by_origin) -> None:
        self.limits = limits
        self._client_of = client_of
        self._lock = threading.Lock()
        self._open: dict[CallContext, _Open] = {}
        self._of_client: Counter[str] = Counter()
        self._ending: FactoryError | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, context: grpc.ServicerContext, method: str) -> CallContext:
        """Take the call until it ends.

        Raises Busy where the limits leave no room, and the reason of `end` after that.
        """
        client = self._client_of(context) if self.limits.calls_per_client is not None else ""
        call = CallContext()
        with self._lock:
            if self._ending is not None:
                raise self._ending
            given_up = self._check_room(client)
            self._open[call] = _Open(context, method, client)
            self._of_client[client] += 1
        if given_up is not None:
            WAITS_ENDED.add("calls", given_up.method)
            given_up.context.cancel()
        self.give_time(call, context)
        if not context.add_callback(lambda: self._forget(call)):
            self._forget(call)  # the call has ended before it began
        return call

    def give_time(self, call: CallContext, context: grpc.ServicerContext) -> None:
        """Let the caller wait from now on until its deadline comes close, or as long as the server allows."""
        remaining = context.time_remaining()
        if remaining > threading.TIMEOUT_MAX:  # gRPC's way to say that there is no deadline: 9.2e18 s
            call.set_timeout(self.limits.wait_s)
        else:
            call.set_timeout(remaining - min(_MARGIN_S, _MARGIN_SHARE * remaining))

    def offer(self, call: CallContext) -> None:
        """From now on the caller's client has something to take."""
        opened = self._open.get(call)
        if opened is not None:  # else the call has ended
            opened.offered = time.monotonic()

    def taken(self, call: CallContext) -> None:
        """The client has taken it; the caller may wait anew for what comes next."""
        opened = self._open.get(call)
        if opened is not None:
            opened.offered = math.inf
            self.give_time(call, opened.context)

    def end(self, reason: FactoryError) -> None:
        """Tell every call under way, and every one to come, `reason`."""
        with self._lock:
            self._ending = reason
            calls = list(self._open)
        for call in calls:
            call.cancel(reason)

    def _check_room(self, client: str) -> _Open | None:
        """The call that gives way to one of `client`, None where there is room; raises Busy."""
        most, of_one = self.limits.calls, self.limits.calls_per_client
        if of_one is not None and self._of_client[client] >= of_one:
            raise Busy(
                f"Blender answers {of_one} calls of this client already. End one, or start it with more "
                "--workers-per-client."
            )
        if len(self._open) < most:
            return None
        call, longest = min(self._open.items(), key=lambda item: item[1].offered)
        if longest.offered > time.monotonic() - self.limits.untaken_s:
            raise Busy(
                f"Blender answers {most} calls already. Ask again, ask another Blender of the lake, or "
                "start it with more --workers."
            )
        self._remove(call)
        return longest

    def _forget(self, call: CallContext) -> None:
        call.cancel(CallCancelled("The call has ended. Nobody waits for its answer."))
        with self._lock:
            if call in self._open:  # else it gave way
                self._remove(call)

    def _remove(self, call: CallContext) -> None:
        client = self._open.pop(call).client
        self._of_client[client] -= 1
        if not self._of_client[client]:
            del self._of_client[client]
