"""The calls that a Blender answers: how many it admits, how long each may wait, and who made it.

A call counts from the arrival of its message on; until then it waits in a waiting room
(`blender.serving.admission`). Health checks and reflection never count, so an orchestrator always gets an
answer. Blender refuses excess calls immediately, so that their clients can ask elsewhere; nothing queues. A
call with an unread answer makes way for a new one: an unread stream would otherwise hold its thread forever.
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
from blender.serving.access_log import LoggedCall
from blender.serving.client_identity import ClientOf, by_origin
from blender.serving.latency import note_answer
from blender.serving.waiting_room import WAITS_ENDED
from factory.errors import FactoryError

_MARGIN_S, _MARGIN_SHARE = 0.5, 0.1  # of a client's deadline, reserved to report the cause of the wait


@dataclass(frozen=True)
class Limits:
    """The limits of one server; None means no limit."""

    calls: int = 128
    """Calls at once. A stream counts as one for as long as it lasts, and occupies a thread."""
    calls_per_client: int | None = None
    """Calls at once per client: per token, else per certificate, else per address."""
    steps: int | None = None
    """Steps per fetch."""
    wait_s: float = 60.0
    """How long a call without a deadline may wait for its answer, or for the next rows."""
    message_s: float = 10.0
    """How long a call that has sent its headers may take to send its message."""
    unread_s: float = 10.0
    """How long an answer may stay unread before its call makes way for another, if no thread is free."""
    explained_rows: int = 1 << 14
    """Rows of an explained step, whose answer is a single message."""

    def check_steps(self, steps: int) -> None:
        """Raise InvalidRequest for a fetch of too many steps; 0 means all."""
        if self.steps is not None and not 0 < steps <= self.steps:
            requested = f"{steps:,} steps" if steps else "all steps up to the end of data"
            raise InvalidRequest(
                f"The fetch asks for {requested}, and this Blender sends at most {self.steps:,} per call. "
                "Ask for fewer, then continue from `next_offset` of the last block."
            )

    def check_explained(self, offset: int, rows: int) -> None:
        """Raise InvalidRequest for a step with too many rows for one answer."""
        if rows > self.explained_rows:
            raise InvalidRequest(
                f"Step {offset:,} has {rows:,} rows, and one answer explains at most "
                f"{self.explained_rows:,}. Fetch the step: its columns `source`, `ordinal` and "
                "`epoch` identify each row."
            )


class ServedCall(CallContext):
    """A call that a server answers, with its entry in the access log."""

    def __init__(self, entry: LoggedCall) -> None:
        super().__init__()
        self.entry = entry


@dataclass
class _OpenCall:
    """A call under way: since when its client waits, and since when an answer waits for the client."""

    context: grpc.ServicerContext
    method: str
    client: str
    asked_at: float
    sent_at: float = math.inf


class CallLimiter:
    """Admits calls of all services and tracks those under way; safe for many threads."""

    def __init__(self, limits: Limits, client_of: ClientOf = by_origin) -> None:
        self.limits = limits
        self.client_of = client_of
        self._lock = threading.Lock()
        self._open: dict[ServedCall, _OpenCall] = {}
        self._n_of_client: Counter[str] = Counter()
        self._ending: FactoryError | None = None

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, context: grpc.ServicerContext, method: str, entry: LoggedCall) -> ServedCall:
        """Admit the call until it ends.

        Raises Busy if the limits leave no room, and after `end` its reason.
        """
        client = self.client_of(context) if self.limits.calls_per_client is not None else ""
        call = ServedCall(entry)
        with self._lock:
            if self._ending is not None:
                raise self._ending
            evicted = self._evict_if_full(client)
            self._open[call] = _OpenCall(context, method, client, time.monotonic())
            self._n_of_client[client] += 1
        if evicted is not None:
            WAITS_ENDED.add("calls", evicted.method)
            evicted.context.cancel()
        self.restart_timeout(call, context)
        if not context.add_callback(lambda: self._forget(call)):
            self._forget(call)  # the call ended before it began
        return call

    def announce_long_calls(self) -> None:
        """Write the open calls that have lasted long into the access log."""
        for call in list(self._open):
            call.entry.announce()

    def restart_timeout(self, call: ServedCall, context: grpc.ServicerContext) -> None:
        """Let the call wait from now until shortly before its deadline, or as long as the server allows."""
        remaining = context.time_remaining()
        if remaining > threading.TIMEOUT_MAX:  # without a deadline gRPC reports 9.2e18 s
            call.set_timeout(self.limits.wait_s)
        else:
            call.set_timeout(remaining - min(_MARGIN_S, _MARGIN_SHARE * remaining))

    def mark_sent(self, call: ServedCall) -> None:
        """Note that the client has an answer to read."""
        opened = self._open.get(call)
        if opened is not None:  # otherwise the call has ended
            opened.sent_at = time.monotonic()
            note_answer(opened.method, opened.sent_at - opened.asked_at)

    def mark_read(self, call: ServedCall) -> None:
        """Note that the client has read the answer, and restart the timeout for the next one."""
        opened = self._open.get(call)
        if opened is not None:
            opened.sent_at, opened.asked_at = math.inf, time.monotonic()
            self.restart_timeout(call, opened.context)

    def end(self, reason: FactoryError) -> None:
        """End every call, present and future, with `reason`."""
        with self._lock:
            self._ending = reason
            calls = list(self._open)
        for call in calls:
            call.cancel(reason)

    def _evict_if_full(self, client: str) -> _OpenCall | None:
        """The call that makes way for one of `client`; None while there is room; raises Busy."""
        most, per_client = self.limits.calls, self.limits.calls_per_client
        if per_client is not None and self._n_of_client[client] >= per_client:
            raise Busy(
                f"Blender already answers {per_client} calls of this client. End one, or start it with more "
                "--workers-per-client."
            )
        if len(self._open) < most:
            return None
        call, longest = min(self._open.items(), key=lambda pair: pair[1].sent_at)
        if longest.sent_at > time.monotonic() - self.limits.unread_s:
            raise Busy(
                f"Blender already answers {most} calls. Retry, ask another Blender of the lake, or start it "
                "with more --workers."
            )
        self._remove(call)
        return longest

    def _forget(self, call: ServedCall) -> None:
        call.cancel(CallCancelled("The call has ended, and no one waits for its answer."))
        with self._lock:
            if call in self._open:  # otherwise it has made way
                self._remove(call)

    def _remove(self, call: ServedCall) -> None:
        client = self._open.pop(call).client
        self._n_of_client[client] -= 1
        if not self._n_of_client[client]:
            del self._n_of_client[client]
