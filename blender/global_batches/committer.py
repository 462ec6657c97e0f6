"""The committing thread of a writer: stored batches join the log while production continues."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled
from blender.global_batches.commit_figures import CommitFigures
from blender.global_batches.errors import LaneClosed, WriterClosed
from blender.global_batches.json_values import Json
from blender.global_batches.log import checkpoints, log
from blender.global_batches.log.client import Client
from blender.global_batches.log.log import Claim, StoredBatch
from blender.global_batches.log.state import Descriptor, Lane, LogState
from blender.global_batches.policies import LaneActivity, Policy
from blender.global_batches.store.namespace_store import NamespaceStore
from factory.errors import MachineError

_END_S = 1.0
_RUNNING: weakref.WeakSet[Committer] = weakref.WeakSet()


class Committer:
    """Commits the batches of a claim in a thread, at the pace of a policy.

    An error of the thread, such as Fenced, is raised by every later call. The thread works for the process
    that started it; in a forked one, calls raise MachineError.
    """

    def __init__(
        self,
        store: NamespaceStore,
        client: Client,
        claim: Claim,
        state: LogState,
        policy: Policy,
        figures: CommitFigures,
        require_namespace: Callable[[], None],
    ) -> None:
        self._store, self._client, self._claim, self._policy = store, client, claim, policy
        self._state = state
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._stored: deque[StoredBatch] = deque()
        self._stored_at: deque[float] = deque()
        self._closing = self._urgent = self._draining = self._stopped = False
        self._error: BaseException | None = None
        self._activity = LaneActivity(state)
        self._call = CallContext()
        self._figures = figures
        self._require_namespace = require_namespace
        self._thread = threading.Thread(target=self._run, name=f"commit-{claim.lane}", daemon=True)
        self._thread.start()
        _RUNNING.add(self)

    @property
    def is_in_starting_process(self) -> bool:
        """Whether this process started the thread, and was not forked from the one that did."""
        return os.getpid() == self._process

    @property
    def lane(self) -> Lane:
        """The committed state of the lane."""
        self._require_own_process()
        with self._changed:
            return self._lane()

    @property
    def lane_of_claim(self) -> Lane:
        """The lane as this process holds it, with the batches that it knows to be committed."""
        return replace(self.lane, epoch=self._claim.epoch, incarnation=self._claim.incarnation)

    @property
    def sequence(self) -> int:
        """Number of the next batch, committed or pending."""
        self._require_own_process()
        with self._changed:
            return self._lane().sequence + len(self._stored)

    @property
    def offset(self) -> Json:
        """The offset at which the producer resumes after the last batch."""
        self._require_own_process()
        with self._changed:
            return self._stored[-1].offset if self._stored else self._lane().offset

    def add(self, batch: Descriptor, offset: Json) -> None:
        """Let the next attempt take a batch along."""
        with self._changed:
            self._stored.append(StoredBatch(self._lane().sequence + len(self._stored), offset, batch))
            self._stored_at.append(time.monotonic())
            self._changed.notify_all()

    def require_open(self) -> None:
        """Raise the error of the thread, if it has one, and LaneClosed if the lane is being closed."""
        self._require_own_process()
        with self._changed:
            self._raise_error()
            if self._closing:
                raise LaneClosed(
                    f"Lane `{self._claim.lane}` is being finished. Write further batches to another lane."
                )

    def flush(self, *, close_lane: bool = False) -> None:
        """Wait until everything is committed, and, with `close_lane`, the lane closed."""
        self._require_own_process()
        with self._changed:
            self._closing = self._closing or close_lane
            self._urgent = True
            self._changed.notify_all()
            try:
                while self._has_work() and self._error is None:
                    self._changed.wait()
            finally:
                self._urgent = False
            self._raise_error()

    def drain(self) -> None:
        """Let the thread commit what there is, then end; nobody waits for it."""
        if self.is_in_starting_process:
            with self._changed:
                self._draining = True
                self._changed.notify_all()

    def join(self, seconds: float | None = None) -> None:
        """Wait for the thread that was left: it may still write a checkpoint."""
        if self.is_in_starting_process:
            self._thread.join(seconds)

    def cancel(self) -> None:
        """End the thread at its next wait; pending batches stay uncommitted."""
        if self.is_in_starting_process:
            with self._changed:
                self._stopped = True
                if self._has_work() and self._error is None:
                    self._error = WriterClosed(
                        f"This writer of lane `{self._claim.lane}` was stopped before its last batches "
                        f"({len(self._stored):,}) were committed, or its lane closed. Open another one: it "
                        "goes on there."
                    )
                self._changed.notify_all()
            self._call.cancel(CallCancelled("The writer was stopped."))

    def raise_error(self) -> None:
        """Raise the error of the thread, if it has one."""
        with self._changed:
            self._raise_error()

    def _require_own_process(self) -> None:
        """Raise where no thread would answer a wait."""
        if not self.is_in_starting_process:
            raise MachineError(
                f"This process was forked from the writer of lane `{self._claim.lane}`, process "
                f"{self._process}, and cannot write in its place. Open a writer of another lane here."
            )

    def _lane(self) -> Lane:
        return self._state.lane(self._claim.lane)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _has_work(self) -> bool:
        return bool(self._stored) or (self._closing and not self._lane().closed)

    def _run(self) -> None:
        try:
            with use_context(self._call):
                gap = 0.0
                while self._wait_for_work(gap):
                    gap = self._attempt()
        except BaseException as error:  # raised where the writer is used
            with self._changed:
                self._error = self._error or error
                self._changed.notify_all()

    def _wait_for_work(self, gap: float) -> bool:
        """Wait for a batch, and for the gap since the last attempt; False once the thread has to end."""
        due = time.monotonic() + gap
        with self._changed:
            while not self._stopped:
                remaining = due - time.monotonic()
                if self._has_work() and (remaining <= 0 or self._urgent or self._draining):
                    return True
                if self._draining and not self._has_work():
                    break
                self._changed.wait(max(remaining, 0.0) if self._has_work() else None)
        return False

    def _attempt(self) -> float:
        """Try once to commit what there is; the gap until the next attempt."""
        with self._changed:
            stored, stored_at, closing = list(self._stored), list(self._stored_at), self._closing
        figures = self._figures
        pauses = self._store.pauses
        started = time.monotonic()
        figures.attempts += 1
        report = figures.report(stored_for=[started - at for at in stored_at])
        state = self._store.run(log.attempt(self._client, self._claim, self._state, stored, closing, report))
        ended = time.monotonic()
        lane = state.lane(self._claim.lane)
        is_committed = lane.closed == closing and (not stored or lane.sequence > stored[-1].sequence)
        if is_committed:
            self._require_namespace()  # creates succeed below an address whose objects were deleted
        with self._changed:
            self._state = state
            while self._stored and self._stored[0].sequence < lane.sequence:
                batch = self._stored.popleft()
                figures.add_batch(batch.descriptor.n_bytes, ended - self._stored_at.popleft())
            figures.lost += not is_committed
            self._changed.notify_all()
        figures.lanes = self._activity.live(state, ended, figures.gap)
        if self._store.pauses == pauses:  # the length of an outage is not that of an attempt
            figures.add_attempt(ended - started)
            figures.gap = self._policy.after(ended - started, figures.lanes)
        if is_committed:
            state = self._store.run(checkpoints.maintain(self._client, state))
            with self._changed:
                self._state = state
        return figures.gap


def stop(committers: Collection[Committer]) -> None:
    """End threads soon: they have a second to commit what there is, and another one to notice the end.

    A request that has no answer by then is not waited for.
    """
    for committer in committers:
        committer.drain()
    _join(committers)
    for committer in committers:
        committer.cancel()
    _join(committers)


def _join(committers: Collection[Committer]) -> None:
    until = time.monotonic() + _END_S
    for committer in committers:
        committer.join(max(0.0, until - time.monotonic()))


@atexit.register
def _stop_all() -> None:
    """Stop the writers that nobody closed, before the interpreter freezes their threads inside a request."""
    stop(list(_RUNNING))
