"""The steps of a namespace as the ranks of a mesh read them, also while they are written.

    reader = BatchReader("s3://bucket/run7", Mesh(dp=32, cp=2, tp=8))
    for step in reader.read(StepRange(offset=812), rank):   # waits for steps that are not committed yet
        train(step.tokens)
    reader.state(900)           # {"namespace": "0c5e...", "step": 900, "content": "5f0c..."}

A step is final once it is committed, and it is committed for all ranks at once. So the number of the next
step is the whole state of a run. The content of the steps before it lets a resume with other data fail.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

from blender.call_context import CallContext, current_context, use_context
from blender.errors import CallCancelled, EndOfData, InvalidRequest, UnknownLength
from blender.global_batches.errors import NamespaceDiffers, OtherHistory
from blender.global_batches.follower import LONGEST_PAUSE_S, Follower
from blender.global_batches.namespace import open_namespace, require_unchanged
from blender.global_batches.rank_slice import GlobalBatchSlice, read_slice
from blender.global_batches.store.namespace_store import open_store
from blender.prefetch import Prefetcher
from blender.spec.mesh import Coordinate, Mesh
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.states import DURABLE_BATCHES
from blender.step_source import StepSource
from factory.counted import counted
from factory.errors import MachineError
from factory.settings import Settings

PREFETCH_BYTES = 64 << 20
"""Bytes of slices that an iterator holds ready, besides those in flight."""

_IN_FLIGHT = 8  # steps: an object store answers many requests at once, each after 10 ms or more
_CONTENT_DIGITS = 32
_STEP_BYTES = 64 << 10  # what a step counts besides its columns, so that tiny ones are not read by thousands


class BatchReader(StepSource[int]):
    """The steps of a namespace; a share is a rank of `mesh`, by default that of the batches.

    Safe for many threads. It may be pickled, and opens the namespace again in each process, which raises
    NamespaceDiffers if another one is there; it may not be forked. `patience_s` bounds the wait for an answer
    of the store, `longest_pause_s` the time between two looks for new steps. Raises NamespaceNotFound, and
    NamespaceDiffers for a mesh of another dp or cp.
    """

    def __init__(
        self,
        uri: str,
        mesh: Mesh | None = None,
        *,
        settings: Settings | None = None,
        patience_s: float = 300.0,
        longest_pause_s: float = LONGEST_PAUSE_S,
    ) -> None:
        self._store = open_store(uri, settings, patience_s=patience_s)
        self.uri = self._store.uri
        self.namespace = open_namespace(self._store)
        self.id = self.namespace.id
        self.mesh = mesh or Mesh(dp=self.namespace.dp, cp=self.namespace.cp)
        self.namespace.require_mesh(self.mesh)
        self._follower = Follower(
            self._store,
            self.namespace.client(),
            partial(require_unchanged, self._store, self.namespace),
            longest_pause_s,
        )
        self._options: dict[str, Any] = {
            "settings": settings,
            "patience_s": patience_s,
            "longest_pause_s": longest_pause_s,
        }
        self._process = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(_opened_again, **self._options), (self.uri, self.mesh, self.id)

    @property
    def steps(self) -> int:
        """The number of steps that are committed now."""
        self._follower.poll()
        return self._follower.steps

    def read(self, steps: StepRange, share: int) -> Iterator[GlobalBatchSlice]:
        """The steps of a range as rank `share` reads them; waits for those that are not committed yet.

        Steps are read ahead by threads, which end with the iterator, within PREFETCH_BYTES. Raises EndOfData
        after the last step of a namespace that has ended, if the range has more; at its step DamagedBatch or
        DamagedLog; Stalled at the deadline of the call that this thread works for; and, while it waits,
        NamespaceNotFound or NamespaceDiffers within some 60 polls after the namespace was deleted.
        """
        if self._process != os.getpid():  # a fork lacks the threads of the store's client
            raise MachineError(
                "This process was forked after its parent had opened the reader. Start workers with `spawn` "
                "or `forkserver`."
            )
        steps.require_whole()
        place = self.mesh.coordinate(whole_number(share, "rank"))
        return self._prefetched(steps, place, current_context().child())

    def end(self) -> int:
        """The number of steps once the producers have finished; raises UnknownLength before that."""
        steps = self.steps
        if not self._follower.has_ended:
            raise UnknownLength(
                f"{self.uri} has {counted(steps, 'step')}, and its producers have not finished. Give the "
                "dataset a `stop`, the step after the last one to read."
            )
        return steps

    def state(self, offset: int) -> dict[str, Any]:
        """The namespace, the next step, and the content of all steps before it.

        Raises InvalidRequest unless these are committed.
        """
        offset = whole_number(offset, "offset")
        if not self._has_before(offset):
            raise InvalidRequest(
                f"The state of step {offset:,} was asked for, and {self.uri} has {self._follower.steps:,} "
                "steps. Give one that was read, or the one after it."
            )
        content = self._follower.content_before(offset)
        return {"namespace": self.id, "step": offset, "content": f"{content:032x}"}

    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The next step of a state.

        Raises OtherHistory for a state of another namespace, or of other steps before that one, and
        InvalidRequest for what is not a state of a namespace.
        """
        namespace, step, content = _checked(state)
        if namespace != self.id:
            raise OtherHistory(
                f"The state belongs to namespace {namespace[:40]}, and {self.uri} is namespace {self.id}. "
                "Open the one of the state, or start without it."
            )
        if not self._has_before(step):
            raise OtherHistory(
                f"The state is at step {step:,}, and {self.uri} has {self._follower.steps:,} steps. Restore "
                "the rest of its log from a copy, or load an older state."
            )
        if self._follower.content_before(step) != content:
            raise OtherHistory(
                f"The state was taken after other batches than steps 0 to {step - 1:,} of {self.uri}. Open "
                "the namespace that its run read, or start without it."
            )
        return step

    def _has_before(self, step: int) -> bool:
        """Whether all steps before one are committed."""
        if step > self._follower.steps:
            self._follower.poll()
        return step <= self._follower.steps

    def _prefetched(
        self, steps: StepRange, place: Coordinate, call: CallContext
    ) -> Iterator[GlobalBatchSlice]:
        def cancel() -> None:
            call.cancel(CallCancelled("The reader of the steps has stopped."))

        slices = self._slices(steps, place, call)
        with Prefetcher(slices, PREFETCH_BYTES, _size, cancel) as prefetched:
            yield from prefetched

    def _slices(self, steps: StepRange, place: Coordinate, call: CallContext) -> Iterator[GlobalBatchSlice]:
        """The steps of a range, some of them in flight at once: run by the thread of a Prefetcher."""
        pool = ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="batches-read")
        pending: deque[Future[GlobalBatchSlice]] = deque()
        try:
            with use_context(call):
                for step in _numbers(steps):
                    if step >= self._follower.steps:
                        while pending:
                            yield call.result(pending.popleft(), self._stalled)
                        if not self._follower.wait_for(step):
                            self._require_end(steps)
                            return
                    pending.append(pool.submit(self._slice, step, place, call))
                    if len(pending) == _IN_FLIGHT:
                        yield call.result(pending.popleft(), self._stalled)
                while pending:
                    yield call.result(pending.popleft(), self._stalled)
        finally:
            # A request in flight may outlast the deadline: its thread ends after it, and is not waited for.
            call.cancel(CallCancelled("The reader of the steps has stopped."))
            pool.shutdown(wait=False, cancel_futures=True)

    def _slice(self, step: int, place: Coordinate, call: CallContext) -> GlobalBatchSlice:
        with use_context(call):
            return read_slice(self._store, self.namespace, self._follower.batch(step), place)

    def _require_end(self, steps: StepRange) -> None:
        """Raise EndOfData unless the range reads to the end of data."""
        if steps.stop is not None:
            raise EndOfData(
                f"{self.uri} has ended after {self._follower.steps:,} steps, and steps up to {steps.stop:,} "
                "were asked for. Stop there, or go on with another namespace."
            )

    def _stalled(self) -> str:
        return f"{self.uri} did not answer in time. Give the call more time, or look at the store."


def _opened_again(uri: str, mesh: Mesh, namespace_id: str, **options: Any) -> BatchReader:
    """A reader that was pickled, in the process that unpickles it."""
    reader = BatchReader(uri, mesh, **options)
    if reader.id != namespace_id:
        raise NamespaceDiffers(
            f"The namespace at {uri} was deleted and created anew since this reader was pickled. Open "
            "a reader of the new one, from its step 0."
        )
    return reader


def _numbers(steps: StepRange) -> Iterator[int]:
    if steps.stop is None:
        return count(steps.offset, steps.stride)
    return iter(range(steps.offset, steps.stop, steps.stride))


def _size(step: GlobalBatchSlice) -> int:
    return step.nbytes + _STEP_BYTES


def _checked(state: object) -> tuple[str, int, int]:
    """Namespace, step and content of a state; raises InvalidRequest if it has none."""
    fields = DURABLE_BATCHES.require(state)
    namespace, content = fields["namespace"], fields["content"]
    step = whole_number(fields["step"], "step")
    if not isinstance(namespace, str) or not isinstance(content, str) or len(content) != _CONTENT_DIGITS:
        raise DURABLE_BATCHES.fault("`namespace` or `content` is of another kind")
    try:
        return namespace, step, int(content, 16)
    except ValueError as error:
        raise DURABLE_BATCHES.fault(f"`content` is {content}") from error
