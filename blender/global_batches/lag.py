"""The distance that a producer keeps to the trainers: it waits instead of filling the store.

    limit = LagLimit(store, namespace, lane="0", max_lag=80)
    limit.wait(sequence=812, holder=lane, require_open=...)       # until it is fewer than 80 steps ahead

Ahead of two things: the oldest step that an open run holds, so that the store holds a bounded number of
batches (the paper's max lag, section 5.3); and the step that readers wait for, so that in assigned order a
lane without a producer does not let the others run on. In reinforcement learning it bounds how stale a
rollout may be.

In arrival order no lane sees the batches that the others have stored and not committed. So each reckons that
every lane that commits has as many as itself, and looks at the log after each commit of its own and at least
every second. The log is then ahead by at most `max_lag` and the batches that the other lanes had not
committed: a share of the room that each saw, so in all at most twice `max_lag` and a batch for each lane.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from functools import partial

from blender.call_context import current_context
from blender.global_batches.log import log, marks
from blender.global_batches.log.runs import Run, Runs
from blender.global_batches.log.state import Lane, LogState
from blender.global_batches.log.step_order import Assigned
from blender.global_batches.namespace import Namespace, require_unchanged
from blender.global_batches.store.namespace_store import NamespaceStore
from factory.counted import counted
from factory.errors import ConfigurationError

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0
_LOOK_S = 1.0  # in arrival order, so often while other lanes may have committed
_WARN_S = 60.0
_LOOKS = 60  # a minute, at the longest pause
_LOG = logging.getLogger(__name__)


class LagLimit:
    """The limit of one lane, for the thread that puts its batches.

    Raises ConfigurationError if `max_lag` lets no run come to its next checkpoint.
    """

    def __init__(self, store: NamespaceStore, namespace: Namespace, lane: str, max_lag: int) -> None:
        self._store, self._namespace, self._lane, self._max_lag = store, namespace, lane, max_lag
        self._client = namespace.client()
        self._state = LogState()
        self._runs = Runs()
        self._n_lanes = 1
        self._looked_s = 0.0
        self._look()
        for name, run in self._runs.open.items():
            self._require_room(name, run)

    def wait(
        self, sequence: int, holder: Lane, n_lanes: int | None, require_open: Callable[[], None]
    ) -> None:
        """Wait until a batch of the lane is near enough, or can no longer be committed; `holder` is its lane.

        `n_lanes` lanes commit, as far as the writer knows; before its first commit it does not (None), and
        all open lanes count. Raises Stalled at the deadline of the call, with
        the reason, and the errors of `require_open`.
        """
        is_old = self._is_arrival and (n_lanes is None or time.monotonic() - self._looked_s > _LOOK_S)
        if is_old or self._state.lane(self._lane).sequence < holder.sequence:
            self._look()
        self._n_lanes = n_lanes or max(1, sum(not lane.closed for lane in self._state.lanes.values()))
        n_looks = 0
        pause_s, start_s, is_said = _FIRST_PAUSE_S, time.monotonic(), False
        while self._is_far(self._step(sequence)):
            require_open()
            self._look()
            step = self._step(sequence)
            if not self._is_far(step) or not self._is_open_for(holder):
                return
            n_looks += 1
            if n_looks % _LOOKS == 0:
                require_unchanged(self._store, self._namespace)
            if not is_said and time.monotonic() - start_s > _WARN_S:
                is_said = True
                _LOG.warning("%s", self._reason(step))
            current_context().wait(pause_s * random.uniform(0.5, 1.0), partial(self._reason, step))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _is_open_for(self, holder: Lane) -> bool:
        """Whether the lane is still its process's, and the data go on: if not, the commit says why."""
        lane = self._state.lane(self._lane)
        is_own = (lane.epoch, lane.incarnation) == (holder.epoch, holder.incarnation)
        return is_own and not self._state.is_ended and not self._client.order.has_ended(self._state)

    @property
    def _is_arrival(self) -> bool:
        return not isinstance(self._client.order, Assigned)

    def _step(self, sequence: int) -> int:
        """The step of a batch of the lane; in arrival order if each lane has as many to commit."""
        if isinstance(self._client.order, Assigned):
            return self._client.order.step(self._lane, sequence)
        return self._state.steps + self._n_lanes * (sequence - self._state.lane(self._lane).sequence)

    def _is_far(self, step: int) -> bool:
        steps, watermark = self._state.steps, self._runs.watermark
        return step >= (steps if watermark is None else min(watermark, steps)) + self._max_lag

    def _look(self) -> None:
        """Read the newest commits and marks."""
        self._looked_s = time.monotonic()
        is_new = self._state.version == 0
        routine = log.load(self._client) if is_new else log.advance(self._client, self._state)
        self._state = self._store.run(routine)
        self._runs = self._store.run(marks.current(self._client))

    def _require_room(self, name: str, run: Run) -> None:
        """Raise ConfigurationError if a run needs steps before its next checkpoint that may not come."""
        if run.every is None:
            return
        keep = run.keep or 1
        if run.every * keep > self._max_lag:
            raise ConfigurationError(
                f"Run `{name}` marks a checkpoint every {counted(run.every, 'step')} and keeps {keep}, and "
                f"`max_lag` is {self._max_lag:,}: producer and trainer would wait for each other forever. "
                f"Give at least {run.every * keep:,}."
            )

    def _reason(self, step: int) -> str:
        """The run or the lane that this one waits for, in a sentence."""
        watermark, holder = self._runs.watermark, self._runs.holder
        behind = f"Lane `{self._lane}` of {self._store.uri} is at step {step:,}, "
        limit = f"and `max_lag` is {self._max_lag:,}. "
        if watermark is not None and step >= watermark + self._max_lag:
            return (
                f"{behind}{step - watermark:,} ahead of step {watermark:,}, held by run `{holder}`, {limit}"
                "It goes on after the run's next checkpoint; close the run if its process is gone."
            )
        if self._is_arrival:
            return (
                f"{behind}{step - self._state.steps:,} ahead of the log with the batches of "
                f"{counted(self._n_lanes, 'lane')}, {limit}It waits for the commit of its own."
            )
        owing = ", ".join(self._client.order.owing(self._state)) or "none"
        return (
            f"{behind}{step - self._state.steps:,} ahead of step {self._state.steps:,}, {limit}It waits for "
            f"the lane that owes that step: {owing}."
        )
