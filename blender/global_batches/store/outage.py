"""Waiting for a store that does not answer: pauses, one warning, and an end."""

from __future__ import annotations

import logging
import random
import threading
import time

from blender.call_context import current_context
from blender.errors import StoreUnavailable
from blender.global_batches.store.objects import NoAnswer

_LOG = logging.getLogger(__name__)

WARNING_S = 10.0
"""Seconds of waiting after which a warning is logged."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0


class StorePatience:
    """The longest wait for one store, and whether an outage was logged; shared by all threads."""

    def __init__(self, place: str, limit_s: float) -> None:
        self.place = place
        self.limit_s = limit_s
        self.logged = False
        self.pauses = 0
        """Tries of all threads that had no answer."""


class Outage:
    """The time that tries without an answer have cost; an answer ends it. Threads may share one.

    `failure` continues the sentence that begins with the store: "has not answered".
    """

    def __init__(self, patience: StorePatience, failure: str) -> None:
        self._patience = patience
        self._failure = failure
        self._lock = threading.Lock()
        self._waited_s = 0.0
        self._counted_until = 0.0
        self._tries = 0

    def wait(self, error: NoAnswer, started: float) -> None:
        """Pause after a try that began at `started` (monotonic).

        Raises StoreUnavailable once the tries and pauses have taken as long as the patience lasts, Stalled at
        the deadline of the current call, and the reason if that is cancelled.
        """
        self._count_since(started)
        self._tries += 1
        self._patience.pauses += 1
        sentence = f"{self._patience.place} {self._failure} for {self._waited_s:.0f} s ({error})."
        left_s = self._patience.limit_s - self._waited_s
        if left_s <= 0:
            raise StoreUnavailable(
                f"{sentence} Start it, or repair the connection, and start again: what is committed stays."
            ) from error
        if self._waited_s >= WARNING_S and not self._patience.logged:
            self._patience.logged = True
            _LOG.warning("%s Trying for another %.0f s.", sentence, left_s)
        longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._tries, 10))
        pause_s = min(left_s, longest_s * random.uniform(0.5, 1.0))
        paused = time.monotonic()
        current_context().wait(pause_s, lambda: f"{sentence} The time of the call is over.")
        self._count_since(paused)

    def end(self) -> None:
        """The store answered."""
        if not self._tries:
            return
        if self._patience.logged:
            self._patience.logged = False
            _LOG.warning("%s answers again, after %.0f s.", self._patience.place, self._waited_s)
        self._waited_s, self._tries = 0.0, 0

    def _count_since(self, started: float) -> None:
        """Count the time from `started` to now, but none twice: tries of several threads overlap."""
        now = time.monotonic()
        with self._lock:
            self._waited_s += now - max(started, min(self._counted_until, now))
            self._counted_until = now
