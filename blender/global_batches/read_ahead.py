"""The slices of a rank in the order of their steps, read ahead by threads within a budget of bytes.

    with ReadAhead(store, namespace, follower, remap, place, budget, call) as ahead:
        for step in ahead.slices(StepRange(812)):           # of positions
            ...
            budget.release(held_bytes(step))        # once a consumer has taken it

The footer of a batch has the size of its slices, so small footers are read some steps ahead, one for all
substeps of a batch. A slice is requested once its bytes fit, together with the slices in flight and those not
yet taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled, EndOfData
from blender.global_batches.byte_budget import ByteBudget
from blender.global_batches.follower import Follower
from blender.global_batches.format.footer import Footer
from blender.global_batches.log.state import Descriptor
from blender.global_batches.namespace import Namespace
from blender.global_batches.rank_slice import GlobalBatchSlice, bytes_while_read, read_footer, read_slice
from blender.global_batches.remap import Remap
from blender.global_batches.store.namespace_store import NamespaceStore
from blender.spec.mesh import Coordinate
from blender.spec.step_range import StepRange

_STEPS = 8  # an object store answers many requests at once, each after 10 ms or more
_STEP_BYTES = 64 << 10  # what a step counts besides its columns, so that tiny ones are not read by thousands


class _BatchPlace(NamedTuple):
    """A batch with its footer, so that its slices can be requested."""

    batch: Descriptor
    footer: Footer


class _NextSlice(NamedTuple):
    """A slice that a rank reads next: its position, its dp index in the batch, and that batch."""

    position: int
    dp: int
    batch: Future[_BatchPlace]


def held_bytes(step: GlobalBatchSlice) -> int:
    """The part of the budget that a slice takes until it is released."""
    return step.nbytes + _STEP_BYTES


class ReadAhead:
    """Slices of the rank at `place` of `remap.mesh`, with at most eight steps in flight.

    One thread iterates. The others only wait for the store: one that waited for a consumer would hold up the
    end of the interpreter.
    """

    def __init__(
        self,
        store: NamespaceStore,
        namespace: Namespace,
        follower: Follower,
        remap: Remap,
        place: Coordinate,
        budget: ByteBudget,
        call: CallContext,
    ) -> None:
        self._store, self._namespace, self._follower = store, namespace, follower
        self._remap, self._place, self._budget, self._call = remap, place, budget, call
        self._pool = ThreadPoolExecutor(_STEPS, thread_name_prefix="batches-read")
        self._footers: deque[_NextSlice] = deque()
        self._latest: tuple[int, Future[_BatchPlace]] | None = None  # the batch of the last footer
        self._room: Future[None] | None = None  # for the slice of the first footer
        self._pending: deque[Future[GlobalBatchSlice]] = deque()
        self.left_over: tuple[int, int] | None = None
        """The first batch that makes no whole step, and the end of the data, once that is known."""

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *exception: object) -> None:
        # A request in flight may outlast the deadline: its thread ends after it, and is not waited for.
        self._call.cancel(CallCancelled("The reader of the steps has stopped."))
        self._pool.shutdown(wait=False, cancel_futures=True)

    def slices(self, steps: StepRange) -> Iterator[GlobalBatchSlice]:
        """The steps of a range of positions; waits for steps until all of their batches are committed.

        Raises EndOfData if the data end before the range, unless it has no stop.
        """
        with use_context(self._call):
            for position in _positions(steps):
                first = self._remap.position(position).step
                last = first + self._remap.batches - 1
                while last >= self._follower.steps and (self._footers or self._pending):
                    yield from self._next()
                if not self._follower.wait_for(last):
                    self._require_end(steps, first)
                    return
                self._footers.append(self._next_slice(position))
                while len(self._footers) + len(self._pending) == _STEPS:
                    yield from self._next()
            while self._footers or self._pending:
                yield from self._next()

    def _require_end(self, steps: StepRange, first: int) -> None:
        """Raise EndOfData unless the range reads to the end of data; note whether that is in a step."""
        if steps.stop is not None:
            raise EndOfData(
                f"{self._store.uri} has ended after {self._follower.steps:,} steps, and steps up to "
                f"{self._remap.position(steps.stop).step:,} were asked for. Stop there, or go on with "
                "another namespace."
            )
        if first < self._follower.steps:
            self.left_over = first, self._follower.steps

    def _next_slice(self, position: int) -> _NextSlice:
        """The slice at a position, with the footer of its batch; substeps of a batch share one."""
        number, dp = self._remap.slice_of(position, self._place.dp)
        if self._latest is None or self._latest[0] != number:
            self._latest = number, self._pool.submit(self._place_of, number)
        return _NextSlice(position, dp, self._latest[1])

    def _next(self) -> Iterator[GlobalBatchSlice]:
        """Ask for the next slice if its bytes fit, or give the first one that was asked for."""
        if self._footers and self._fits(wait=not self._pending):
            self._room = None
            self._pending.append(self._pool.submit(self._slice, self._footers.popleft()))
        else:
            yield self._call.result(self._pending.popleft(), self._stalled)

    def _fits(self, wait: bool) -> bool:
        """Whether the slice of the first footer has its part of the budget.

        Without `wait`, slices are pending and have to go out first: their consumer makes room for this one,
        and an error of its footer comes after them.
        """
        upcoming = self._footers[0]
        first = upcoming.batch
        if not wait and (not first.done() or first.exception() is not None):
            return False
        footer = self._call.result(first, self._stalled).footer
        if self._room is None:
            self._room = self._budget.request(self._n_bytes(footer, upcoming.dp))
        if wait:
            self._call.result(self._room, self._not_taken)
        return self._room.done()

    def _n_bytes(self, footer: Footer, dp: int) -> int:
        place = replace(self._place, dp=dp)
        return bytes_while_read(self._namespace, footer, place, self._remap.mesh.cp) + _STEP_BYTES

    def _place_of(self, number: int) -> _BatchPlace:
        """The location and footer of a step: run by a thread of the pool."""
        with use_context(self._call):
            batch = self._follower.batch(number)
            return _BatchPlace(batch, read_footer(self._store, self._namespace, batch))

    def _slice(self, upcoming: _NextSlice) -> GlobalBatchSlice:
        """A step: run by a thread of the pool."""
        batch, footer = upcoming.batch.result()
        with use_context(self._call):
            place, cp = replace(self._place, dp=upcoming.dp), self._remap.mesh.cp
            own = read_slice(self._store, self._namespace, batch, footer, place, cp)
        step, substep = self._remap.position(upcoming.position)
        self._budget.release(self._n_bytes(footer, upcoming.dp) - held_bytes(own))
        return replace(
            own,
            offset=step,
            place=self._place,
            substep=substep,
            substeps=self._remap.substeps,
            batches=self._remap.batches,
            batches_before=batch.step - step,
        )

    def _stalled(self) -> str:
        return f"{self._store.uri} did not answer in time. Give the call more time, or look at the store."

    def _not_taken(self) -> str:
        return (
            f"The time of the call was over while slices of {self._store.uri} were ready and nobody took "
            "them. Give the call more time."
        )


def _positions(steps: StepRange) -> Iterator[int]:
    if steps.stop is None:
        return count(steps.offset, steps.stride)
    return iter(range(steps.offset, steps.stop, steps.stride))
