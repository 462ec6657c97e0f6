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
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from blender.call_context import CallContext, current_context
from blender.errors import CallCancelled, InvalidRequest, UnknownLength
from blender.global_batches.byte_budget import ByteBudget
from blender.global_batches.errors import NamespaceDiffers, OtherHistory
from blender.global_batches.follower import LONGEST_PAUSE_S, Follower
from blender.global_batches.namespace import open_namespace, require_unchanged
from blender.global_batches.rank_slice import GlobalBatchSlice
from blender.global_batches.read_ahead import ReadAhead, held_bytes
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.training_run import TrainingRun
from blender.spec.mesh import Coordinate, Mesh
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.trainer.prefetch import Prefetcher
from blender.trainer.states import DURABLE_BATCHES
from blender.trainer.step_source import StepSource
from factory.counted import counted
from factory.errors import MachineError
from factory.settings import Settings

PREFETCH_BYTES = 64 << 20
"""Bytes of slices that an iterator has in flight and ready, unless it is told otherwise."""

_CONTENT_DIGITS = 32


class BatchReader(StepSource[int]):
    """The steps of a namespace; a share is a rank of `mesh`, by default the mesh of the batches.

    Safe for many threads. It may be pickled, and opens the namespace again in each process, which raises
    NamespaceDiffers if another one is there; it may not be forked. `patience_s` bounds the wait for an answer
    of the store, `longest_pause_s` the time between two looks for new steps, and `prefetch_bytes` the memory
    of an iterator: slices in flight and slices that are ready, together. One slice may be larger. Raises
    NamespaceNotFound, and NamespaceDiffers for a mesh of another dp or cp.
    """

    def __init__(
        self,
        uri: str,
        mesh: Mesh | None = None,
        *,
        settings: Settings | None = None,
        patience_s: float = 300.0,
        longest_pause_s: float = LONGEST_PAUSE_S,
        prefetch_bytes: int = PREFETCH_BYTES,
    ) -> None:
        self._prefetch_bytes = whole_number(prefetch_bytes, "prefetch_bytes", least=1)
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
            "prefetch_bytes": prefetch_bytes,
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
        """The steps of a range as rank `share` reads them; waits for steps not committed yet.

        Steps are read ahead by threads, which end with the iterator, within `prefetch_bytes`. Raises
        EndOfData after the last step of a namespace that has ended, if the range has more; at its step
        DamagedBatch or DamagedLog; Stalled at the deadline of the call that this thread works for; and, while
        it waits, NamespaceNotFound or NamespaceDiffers within some 60 polls after the namespace was deleted.
        """
        if self._process != os.getpid():  # a fork lacks the threads of the store's client
            raise MachineError(
                "This process was forked after its parent had opened the reader. Start workers with `spawn` "
                "or `forkserver`."
            )
        steps.require_whole()
        place = self.mesh.coordinate(whole_number(share, "rank"))
        return self._prefetched(steps, place, current_context().child())

    def open_run(
        self, name: str, *, start: int | Literal["oldest"] = 0, every: int | None = None, keep: int = 2
    ) -> TrainingRun:
        """Open a run of this namespace, which holds the batches to which it may go back."""
        return TrainingRun(
            self.uri,
            name,
            start=start,
            every=every,
            keep=keep,
            settings=self._options["settings"],
            patience_s=self._options["patience_s"],
        )

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
        InvalidRequest for anything but a state of a namespace.
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

        budget = ByteBudget(self._prefetch_bytes)
        slices = self._slices(steps, place, call, budget)
        with Prefetcher(slices, self._prefetch_bytes, held_bytes, cancel) as prefetched:
            for step in prefetched:
                budget.release(held_bytes(step))
                yield step

    def _slices(
        self, steps: StepRange, place: Coordinate, call: CallContext, budget: ByteBudget
    ) -> Iterator[GlobalBatchSlice]:
        """The steps of a range: run by the thread of a Prefetcher."""
        with ReadAhead(self._store, self.namespace, self._follower, place, budget, call) as ahead:
            yield from ahead.slices(steps)


def _opened_again(uri: str, mesh: Mesh, namespace_id: str, **options: Any) -> BatchReader:
    """A reader that was pickled, in the process that unpickles it."""
    reader = BatchReader(uri, mesh, **options)
    if reader.id != namespace_id:
        raise NamespaceDiffers(
            f"The namespace at {uri} was deleted and created anew since this reader was pickled. Open "
            "a reader of the new one, from its step 0."
        )
    return reader


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
