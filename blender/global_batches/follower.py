"""The log of a namespace as readers follow it: the committed steps, and the wait for the next ones.

    follower = Follower(store, namespace.client(), require_namespace)
    follower.wait_for(812)                          # True once step 812 is committed
    follower.batch(812)                             # its Descriptor
    follower.content_before(812)                    # equal for equal steps 0 to 811

A follower holds the steps after the last segment, and reads the segments before them when they are needed.
All iterators of a reader share one: the first iterator to end its pause polls for all.

Every poll asks for the floor too (`log.advance`). A reader that only probes the next version, like the
paper's consumers, waits forever for a version trimmed during its pause.
"""

from __future__ import annotations

import logging
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial

from blender.call_context import current_context
from blender.global_batches.log import checkpoints, log
from blender.global_batches.log.client import Client
from blender.global_batches.log.state import Descriptor, LogState, content_of
from blender.global_batches.store.namespace_store import NamespaceStore

LONGEST_PAUSE_S = 1.0
"""Seconds between two polls of a namespace in which nothing happens."""

_FIRST_PAUSE_S = 0.01
_LOG = logging.getLogger(__name__)
_IDLE_POLLS = 60  # a minute, at the longest pause
_SEGMENTS = 4  # of 10,000 descriptors, 3 MB, each


class Follower:
    """The newest state of a log that this process has read; safe for many threads.

    `require_namespace` raises if the namespace was deleted or replaced, which looks like one in which nothing
    happens. It is called now and then while nothing does.
    """

    def __init__(
        self,
        store: NamespaceStore,
        client: Client,
        require_namespace: Callable[[], None],
        longest_pause_s: float = LONGEST_PAUSE_S,
    ) -> None:
        self._store = store
        self._client = client
        self._require_namespace = require_namespace
        self._longest_pause_s = longest_pause_s
        self._state = LogState()
        self._is_loaded = False
        self._polls = self._idle_polls = 0
        self._turns = Turns()
        self._segments: OrderedDict[int, tuple[Descriptor, ...]] = OrderedDict()
        self._segments_lock = threading.Lock()
        self._summed = (0, 0)  # a step, and the content before it

    @property
    def steps(self) -> int:
        """The number of steps that were committed at the last poll."""
        return self._state.steps

    @property
    def first_kept(self) -> int:
        """The step before which batches were reclaimed, or may be at any moment, at the last poll."""
        return self._client.floor.step

    @property
    def has_ended(self) -> bool:
        """Whether the producers had finished at the last poll."""
        return self._client.order.has_ended(self._state)

    def poll(self) -> None:
        """Read at least the commits before this call."""
        while not self._poll_or_join():
            pass

    def wait_for(self, step: int) -> bool:
        """Wait until a step is committed, and return True; False if the data have ended before it.

        Raises Stalled at the deadline of the current call, and the reason if that is cancelled.
        """
        state, pause_s = self._state, 0.0
        while step >= state.steps and not self._client.order.has_ended(state):
            version, polls = state.version, self._polls
            current_context().wait(pause_s * random.uniform(0.5, 1.0), self._stalled)
            if self._polls == polls:  # else another thread has polled meanwhile
                self._poll_or_join()
            state = self._state
            pause_s = min(max(_FIRST_PAUSE_S, 2 * pause_s), self._longest_pause_s)
            if state.version > version:
                pause_s = _FIRST_PAUSE_S
        return step < state.steps

    def batch(self, step: int) -> Descriptor:
        """The location of a committed step's batch. Raises DamagedLog."""
        state = self._state
        segment, place = divmod(step, self._client.segment_steps)
        if segment < len(state.segments):
            return self._segment(state, segment)[place]
        return state.tail[step - len(state.segments) * self._client.segment_steps]

    def content_before(self, step: int) -> int:
        """The content of all steps before a committed one. Raises DamagedLog."""
        state, segment_steps = self._state, self._client.segment_steps
        segment = min(step // segment_steps, len(state.segments))
        first = segment * segment_steps
        summed_step, content = self._summed
        if not first <= summed_step <= step:
            summed_step, content = first, content_of((), sum(state.segments[:segment]))
        if summed_step < step:
            batches = state.tail if segment == len(state.segments) else self._segment(state, segment)
            content = content_of(batches[summed_step - first : step - first], content)
        self._summed = step, content
        return content

    def _poll_or_join(self) -> bool:
        """Poll; or, if another thread polls, wait for its poll, which may have begun before this call."""
        return self._turns.take("poll", self._poll, self._stalled)

    def _poll(self) -> None:
        if not self._is_loaded:
            state = self._store.run(log.load(self._client))
            self._store.run(log.require_whole(self._client, state))
            self._state = state
            self._is_loaded = True
            self._polls += 1
            return
        state = self._store.run(log.advance(self._client, self._state))
        is_idle = state.version == self._state.version
        self._state = state
        self._polls += 1
        self._idle_polls = self._idle_polls + 1 if is_idle else 0
        if self._idle_polls == _IDLE_POLLS:
            self._idle_polls = 0
            self._require_namespace()
            self._store.run(log.require_whole(self._client, state))
            _LOG.warning("%s", self._waits())

    def _segment(self, state: LogState, segment: int) -> tuple[Descriptor, ...]:
        while (batches := self._kept_segment(segment)) is None:
            self._turns.take(segment, partial(self._read_segment, state, segment), self._unread)
        return batches

    def _kept_segment(self, segment: int) -> tuple[Descriptor, ...] | None:
        with self._segments_lock:
            batches = self._segments.get(segment)
            if batches is not None:
                self._segments.move_to_end(segment)
            return batches

    def _read_segment(self, state: LogState, segment: int) -> None:
        if self._kept_segment(segment) is not None:  # another thread has just read it
            return
        first = segment * self._client.segment_steps
        batches = self._store.run(checkpoints.read_segment(self._client, state, first))
        with self._segments_lock:
            self._segments[segment] = batches
            if len(self._segments) > _SEGMENTS:
                self._segments.popitem(last=False)

    def _stalled(self) -> str:
        return f"{self._waits()} Look whether its producers run, or give the call more time."

    def _waits(self) -> str:
        """The lanes that may commit the next step, for a reader that waits."""
        lanes = ", ".join(self._client.order.owing(self._state)) or "none"
        return (
            f"{self._store.uri} has {self._state.steps:,} steps, and the next one is not committed in time. "
            f"Lanes that may commit it: {lanes}."
        )

    def _unread(self) -> str:
        return f"{self._store.uri} did not answer in time. Give the call more time, or look at the store."


class Turns:
    """For each piece of work, by its key, at most one thread that does it; safe for many threads."""

    def __init__(self) -> None:
        self._running: dict[Hashable, Future[None]] = {}
        self._lock = threading.Lock()

    def take(self, key: Hashable, work: Callable[[], None], stalled: Callable[[], str]) -> bool:
        """Do the work and return True; or wait until the thread that does it has ended, and return False.

        The work may have failed in the other thread, which alone raises the error. The wait ends with
        the current call: it raises Stalled with the sentence of `stalled`, or the reason of a cancellation.
        """
        own: Future[None] = Future()
        try:
            with self._lock:
                running = self._running.setdefault(key, own)
            if running is own:
                work()
        finally:  # also where an interrupt came before `work`
            with self._lock:
                if self._running.get(key) is own:
                    del self._running[key]
            own.set_result(None)
        if running is own:
            return True
        current_context().result(running, stalled)
        return False
