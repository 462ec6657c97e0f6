"""The thread of a writer that commits: batches that are stored join the log beside production."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled
from blender.global_batches.policies import LaneActivity, Policy
from blender.global_batches.protocol import checkpoints, log
from blender.global_batches.protocol.client import Client
from blender.global_batches.protocol.log import Claim, Made
from blender.global_batches.protocol.state import Lane, LogState
from blender.global_batches.store.namespace_store import NamespaceStore


@dataclass
class CommitFigures:
    """What a writer's attempts came to."""

    attempts: int = 0
    lost: int = 0
    """Attempts that added nothing: another producer created the version."""
    gap: float = 0.0
    """Seconds from the last attempt to the next one."""
    lanes: int = 1
    """Lanes that committed lately."""


class Committer:
    """Commits the batches of a claim in a thread, at the pace of a policy.

    An error of the thread, such as Fenced, is raised by every later call.
    """

    def __init__(
        self,
        store: NamespaceStore,
        client: Client,
        claim: Claim,
        state: LogState,
        policy: Policy,
        figures: CommitFigures,
    ) -> None:
        self._store, self._client, self._claim, self._policy = store, client, claim, policy
        self._state = state
        self._changed = threading.Condition()
        self._made: deque[Made] = deque()
        self._closing = self._urgent = self._stopped = False
        self._error: BaseException | None = None
        self._activity = LaneActivity()
        self._call = CallContext()
        self._figures = figures
        self._thread = threading.Thread(target=self._run, name=f"commit-{claim.lane}", daemon=True)
        self._thread.start()

    @property
    def lane(self) -> Lane:
        """The lane as it is committed."""
        with self._changed:
            return self._state.lane(self._claim.lane)

    def add(self, made: Made) -> None:
        """Let the next attempt take a batch along."""
        with self._changed:
            self._raise_error()
            self._made.append(made)
            self._changed.notify_all()

    def flush(self, *, close_lane: bool = False) -> None:
        """Wait until everything is committed, and, with `close_lane`, the lane closed."""
        with self._changed:
            self._closing = self._closing or close_lane
            self._urgent = True
            self._changed.notify_all()
            while self._has_work() and self._error is None:
                self._changed.wait()
            self._urgent = False
            self._raise_error()

    def stop(self) -> None:
        """End the thread; what is not committed then stays uncommitted."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._call.cancel(CallCancelled("The writer was closed."))
        self._thread.join()

    def raise_error(self) -> None:
        """Raise the error of the thread, if it has ended by one."""
        with self._changed:
            self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _has_work(self) -> bool:
        return bool(self._made) or (self._closing and not self._state.lane(self._claim.lane).closed)

    def _run(self) -> None:
        try:
            with use_context(self._call):
                gap = 0.0
                while self._wait_for_work(gap):
                    gap = self._attempt()
        except BaseException as error:  # raised where the writer is used
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _wait_for_work(self, gap: float) -> bool:
        """Wait for a batch, and for the gap since the last attempt; False once the committer is stopped."""
        due = time.monotonic() + gap
        with self._changed:
            while not self._stopped:
                remaining = due - time.monotonic()
                if self._has_work() and (remaining <= 0 or self._urgent):
                    return True
                self._changed.wait(max(remaining, 0.0) if self._has_work() else None)
        return False

    def _attempt(self) -> float:
        """Try once to commit what there is; the gap until the next attempt."""
        with self._changed:
            made, closing = list(self._made), self._closing
        figures = self._figures
        started = time.monotonic()
        state = self._store.run(log.attempt(self._client, self._claim, self._state, made, closing))
        ended = time.monotonic()
        lane = state.lane(self._claim.lane)
        is_committed = lane.closed == closing and (not made or lane.sequence > made[-1].sequence)
        with self._changed:
            self._state = state
            while self._made and self._made[0].sequence < lane.sequence:
                self._made.popleft()
            figures.attempts += 1
            figures.lost += not is_committed
            self._changed.notify_all()
        figures.lanes = self._activity.live(state, ended, figures.gap)
        figures.gap = self._policy.after(ended - started, figures.lanes)
        if is_committed:
            state = self._store.run(checkpoints.maintain(self._client, state))
            with self._changed:
                self._state = state
        return figures.gap
