"""Slots for calls that wait on their clients: few, each held for a bounded time, and shared among clients.

A thread waits for the message of a call, for the next request of a stream, or for a client to read an answer.
The client decides how long that takes, so clients that open calls and then do nothing could occupy every
thread. A call holds a slot of a waiting room while it waits. In a full room a new call takes the slot that
the client with the most slots has held longest; a wait without progress for too long ends as well. A library
that sends the message with the headers delivers it within milliseconds, so such waits are not the ones that
end.

Ending a wait cancels its call, which gRPC allows from any thread while the waiting thread is inside gRPC.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from blender.rows.counts import Counts
from blender.serving.client_identity import ClientOf, by_origin

WAITS_ENDED = Counts()
"""Calls that were cancelled while they waited on their clients, by method."""


class Slot:
    """The slot that one call holds."""

    def __init__(self, context: grpc.ServicerContext, method: str, client: str) -> None:
        self.context, self.method, self.client = context, method, client
        self.renew()

    def renew(self) -> None:
        """Restart the clock: the client has made progress."""
        self.since = time.monotonic()


class WaitingRoom:
    """At most `slots` waiting calls; safe for many threads.

    `sweep` ends the waits that have lasted `wait_s`; None sets no limit.
    """

    def __init__(self, slots: int, wait_s: float | None = None, client_of: ClientOf = by_origin) -> None:
        self._slots, self._wait_s, self._client_of = slots, wait_s, client_of
        self._lock = threading.Lock()
        self._held: dict[Slot, None] = {}  # in order of arrival

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def wait(self, context: grpc.ServicerContext, method: str) -> Iterator[Slot]:
        """Hold a slot inside; the call is cancelled when another call takes the slot, or its time ends."""
        slot = Slot(context, method, self._client_of(context))
        with self._lock:
            evicted = self._longest_of_busiest() if len(self._held) >= self._slots else None
            if evicted is not None:
                del self._held[evicted]
            self._held[slot] = None
        if evicted is not None:
            _cancel(evicted)
        try:
            yield slot
        finally:
            with self._lock:
                self._held.pop(slot, None)  # another call may have taken it

    def sweep(self) -> None:
        """End the waits that have lasted too long."""
        if self._wait_s is None:
            return
        oldest = time.monotonic() - self._wait_s
        with self._lock:
            late = [slot for slot in self._held if slot.since < oldest]
            for slot in late:
                del self._held[slot]
        for slot in late:
            _cancel(slot)

    def _longest_of_busiest(self) -> Slot:
        n_held = Counter(slot.client for slot in self._held)
        most = max(n_held.values())
        return min((slot for slot in self._held if n_held[slot.client] == most), key=lambda slot: slot.since)


def _cancel(slot: Slot) -> None:
    WAITS_ENDED.add("calls", slot.method)
    slot.context.cancel()
