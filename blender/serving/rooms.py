"""Places for calls that wait for their clients: few, each for a bounded time, and shared among the clients.

A thread waits for the message of a call, for the next request of a stream, or for a reader to take an
answer. How long is up to the client, so whoever opens calls and then does nothing could hold every thread. A
call holds a place of a room while it waits. Where all are taken, a newcomer gets the place that was held the
longest by the client with the most of them; a wait that no client moves on for too long ends as well. A
message that its library sends with the headers comes within milliseconds, so such waits are not the ones
that end.

To end a wait is to cancel its call, which gRPC allows from any thread, while the one that waits is inside
gRPC.
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
"""Calls that were cancelled while they waited for their clients, by method."""


class Place:
    """The place of one call."""

    def __init__(self, context: grpc.ServicerContext, method: str, client: str) -> None:
        self.context, self.method, self.client = context, method, client
        self.keep()

    def keep(self) -> None:
        """The client did what was waited for; its time begins again."""
        self.since = time.monotonic()


class Room:
    """At most `places` calls that wait; safe for many threads.

    `sweep` ends those that have waited for `wait_s`, where that is a limit.
    """

    def __init__(self, places: int, wait_s: float | None = None, client_of: ClientOf = by_origin) -> None:
        self._places, self._wait_s, self._client_of = places, wait_s, client_of
        self._lock = threading.Lock()
        self._taken: dict[Place, None] = {}  # in the order of coming

    def __len__(self) -> int:
        return len(self._taken)

    @contextmanager
    def wait(self, context: grpc.ServicerContext, method: str) -> Iterator[Place]:
        """Hold a place inside; the call is cancelled where another needs the place, or its time ends."""
        place = Place(context, method, self._client_of(context))
        with self._lock:
            given_up = self._longest_of_most() if len(self._taken) >= self._places else None
            if given_up is not None:
                del self._taken[given_up]
            self._taken[place] = None
        if given_up is not None:
            _end(given_up)
        try:
            yield place
        finally:
            with self._lock:
                self._taken.pop(place, None)  # it may be gone, to another call

    def sweep(self) -> None:
        """End the waits that last too long."""
        if self._wait_s is None:
            return
        oldest = time.monotonic() - self._wait_s
        with self._lock:
            late = [place for place in self._taken if place.since < oldest]
            for place in late:
                del self._taken[place]
        for place in late:
            _end(place)

    def _longest_of_most(self) -> Place:
        held = Counter(place.client for place in self._taken)
        most = max(held.values())
        return min(
            (place for place in self._taken if held[place.client] == most), key=lambda place: place.since
        )


def _end(place: Place) -> None:
    WAITS_ENDED.add("calls", place.method)
    place.context.cancel()
