"""The steps of a namespace as the ranks of a mesh read them, also while they are written.

    reader = BatchReader("s3://bucket/run7", Mesh(dp=32, cp=2, tp=8))
    for step in reader.read(StepRange(offset=812), rank):   # waits for steps that are not committed yet
        train(step.tokens)
    reader.state_after(step)    # {"namespace": "0c5e...", "step": 813, "content": "5f0c...", ...}

A step is final once it is committed, and it is committed for all ranks at once. So the number of the next
step is the whole state of a run. The content of the steps before it lets a resume with other data fail.

Ranks of another dp or cp read the same batches (`remap`), once the call accepts steps of other rows:

    half = BatchReader("s3://bucket/run7", Mesh(dp=16, cp=2, tp=16), accumulate=2)
    for step in half.read(StepRange(offset=813), rank):     # twice for each batch: substep 0 and 1
        ...
        if step.substep == step.substeps - 1:
            optimizer.step()
"""

from __future__ import annotations

import os
import warnings
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
from blender.global_batches.remap import Remap, StepPosition
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.training_run import TrainingRun
from blender.spec.mesh import Coordinate, Mesh
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.trainer.prefetch import Prefetcher
from blender.trainer.states import DURABLE_BATCHES
from factory.counted import counted
from factory.errors import MachineError
from factory.settings import Settings

PREFETCH_BYTES = 64 << 20
"""Bytes of slices that an iterator has in flight and ready, unless it is told otherwise."""

_CONTENT_DIGITS = 32


class BatchReader:
    """The steps of a namespace; a share is a rank of `mesh`, by default the mesh of the batches.

    The dp and the cp of `mesh` may be multiples of the batches' dp and cp, or divisors. With
    another dp the rows of a step change, and the caller says that it means that: `accept_batch_change` makes
    an optimizer step of them, and `accumulate`, on fewer ranks, one of all steps that a batch is.

    Safe for many threads. It may be pickled, and opens the namespace again in each process, which raises
    NamespaceDiffers if another one is there; it may not be forked. `patience_s` bounds the wait for an answer
    of the store, `longest_pause_s` the time between two looks for new steps, and `prefetch_bytes` the memory
    of an iterator: slices in flight and slices that are ready, together. One slice may be larger. Raises
    NamespaceNotFound, and NamespaceDiffers for a mesh that cannot read the batches, or changes the rows of a
    step without a word about it.
    """

    def __init__(
        self,
        uri: str,
        mesh: Mesh | None = None,
        *,
        accept_batch_change: bool = False,
        accumulate: int | None = None,
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
        self.mesh = mesh or self.namespace.mesh
        self.remap = Remap(self.namespace.mesh, self.mesh)
        self.remap.require_batch_change(accept_batch_change, accumulate)
        self.accumulates = accumulate is not None
        """Whether the optimizer steps once for all steps that a batch is."""
        self._follower = Follower(
            self._store,
            self.namespace.client(),
            partial(require_unchanged, self._store, self.namespace),
            longest_pause_s,
        )
        self._options: dict[str, Any] = {
            "accept_batch_change": accept_batch_change,
            "accumulate": accumulate,
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

    def read(self, steps: StepRange, share: int, *, substep: int = 0) -> Iterator[GlobalBatchSlice]:
        """The batches of a range as rank `share` reads them; waits for batches not committed yet.

        The first one is read from its `substep` on. A stride counts steps of the mesh: several batches may
        be one of them, or one batch several. Steps are read ahead by threads, which end with the iterator,
        within `prefetch_bytes`. Raises EndOfData after the last step of a namespace that has ended, if the
        range has more; at its step DamagedBatch or DamagedLog; Stalled at the deadline of the call that this
        thread works for; and, while it waits, NamespaceNotFound or NamespaceDiffers within some 60 polls
        after the namespace was deleted. Warns of batches at the end of data that are no whole step.
        """
        steps.require_whole()
        first = self.remap.number(StepPosition(steps.offset, self._checked_substep(substep)))
        n_positions = None if steps.steps is None else max(0, steps.steps * self.remap.substeps - substep)
        positions = StepRange(first, n_positions, steps.stride * self.remap.batches)
        return self.read_positions(positions, share)

    def read_positions(self, positions: StepRange, share: int) -> Iterator[GlobalBatchSlice]:
        """As `read`, of a range of positions (`Remap`)."""
        if self._process != os.getpid():  # a fork lacks the threads of the store's client
            raise MachineError(
                "This process was forked after its parent had opened the reader. Start workers with `spawn` "
                "or `forkserver`."
            )
        positions.require_whole()
        self.remap.require_whole_steps(positions.offset, positions.stop)
        place = self.mesh.coordinate(whole_number(share, "rank"))
        return self._prefetched(positions, place, current_context().child())

    def open_run(
        self, name: str, *, start: int | Literal["oldest"] = 0, every: int | None = None, keep: int = 2
    ) -> TrainingRun:
        """Open a run of this namespace, which holds the batches to which it may go back.

        Where a step of the mesh is k batches, checkpoints are at least k batches apart, so that `every` is
        rounded up: a producer knows by it how far ahead it must be.
        """
        batches = self.remap.batches
        if batches > 1:
            every = -(-(every or batches) // batches) * batches
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

    def state(self, offset: int, substep: int = 0, *, run: str | None = None) -> dict[str, Any]:
        """The namespace, the next step and its substep, and the content of all steps before it.

        A reader that accumulates begins the batch again, because no checkpoint holds the gradients of
        its first substeps. A state may name the `run` that holds its batches. Raises InvalidRequest unless
        the steps before it are committed.
        """
        offset = whole_number(offset, "offset")
        substep = 0 if self.accumulates else self._checked_substep(substep)
        if not self._has_before(offset):
            raise InvalidRequest(
                f"The state of step {offset:,} was asked for, and {self.uri} has {self._follower.steps:,} "
                "steps. Give one that was read, or the one after it."
            )
        content = self._follower.content_before(offset)
        return {
            "namespace": self.id,
            "step": offset,
            "substep": substep,
            "dp": self.mesh.dp,
            "run": run,
            "content": f"{content:032x}",
        }

    def state_after(self, step: GlobalBatchSlice) -> dict[str, Any]:
        """The state of a reader that has taken a step."""
        return self.state(*self.remap.position(self.remap.number_after(step.offset, step.substep)))

    def offset_of(self, state: Mapping[str, Any]) -> int:
        """The next step of a state, which begins with its first substep.

        Raises as `position_of`, and InvalidRequest for another substep.
        """
        step, substep = self.position_of(state)
        if substep:
            raise InvalidRequest(
                f"The state is at substep {substep} of step {step:,}, and its step alone was asked for. Give "
                "`read` both, from `position_of`."
            )
        return step

    def position_of(self, state: Mapping[str, Any]) -> StepPosition:
        """The next step of a state, and its substep.

        Raises OtherHistory for a state of another namespace, or of other steps before that one, and
        InvalidRequest for anything but a state of a namespace, and for one within a batch that a mesh of
        another dp divides otherwise.
        """
        namespace, position, dp, content = _checked(state)
        step = position.step
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
        if position.substep and dp != self.mesh.dp:
            raise InvalidRequest(
                f"The state is at substep {position.substep} of step {step:,} as dp={dp} reads it, and this "
                f"mesh has dp={self.mesh.dp}. Load it with dp={dp} and go on to the end of the step, or load "
                "a state at substep 0."
            )
        if position.substep and self.accumulates:
            raise InvalidRequest(
                f"The state is at substep {position.substep} of step {step:,}, after an optimizer step with "
                "a part of its batch, and this reader accumulates whole batches. Load it with "
                "`accept_batch_change=True` and go on to the end of the step, or load a state at substep 0."
            )
        return StepPosition(step, self._checked_substep(position.substep))

    def _checked_substep(self, substep: int) -> int:
        return whole_number(substep, "substep", most=self.remap.substeps - 1)

    def _has_before(self, step: int) -> bool:
        """Whether all steps before one are committed."""
        if step > self._follower.steps:
            self._follower.poll()
        return step <= self._follower.steps

    def _prefetched(
        self, positions: StepRange, place: Coordinate, call: CallContext
    ) -> Iterator[GlobalBatchSlice]:
        def cancel() -> None:
            call.cancel(CallCancelled("The reader of the steps has stopped."))

        budget = ByteBudget(self._prefetch_bytes)
        ahead = ReadAhead(self._store, self.namespace, self._follower, self.remap, place, budget, call)
        slices = _slices(ahead, positions)
        with Prefetcher(slices, self._prefetch_bytes, held_bytes, cancel) as prefetched:
            for step in prefetched:
                budget.release(held_bytes(step))
                yield step
        if ahead.left_over is not None:
            warnings.warn(self.remap.left_over(self.uri, *ahead.left_over), stacklevel=2)


def _slices(ahead: ReadAhead, positions: StepRange) -> Iterator[GlobalBatchSlice]:
    """The steps of a range: run by the thread of a Prefetcher."""
    with ahead:
        yield from ahead.slices(positions)


def _opened_again(uri: str, mesh: Mesh, namespace_id: str, **options: Any) -> BatchReader:
    """A reader that was pickled, in the process that unpickles it."""
    reader = BatchReader(uri, mesh, **options)
    if reader.id != namespace_id:
        raise NamespaceDiffers(
            f"The namespace at {uri} was deleted and created anew since this reader was pickled. Open "
            "a reader of the new one, from its step 0."
        )
    return reader


def _checked(state: object) -> tuple[str, StepPosition, int | None, int]:
    """Namespace, position, dp and content of a state; raises InvalidRequest if it has none."""
    fields = DURABLE_BATCHES.require(state)
    namespace, content, run = fields["namespace"], fields["content"], fields.get("run")
    position = StepPosition(
        whole_number(fields["step"], "step"), whole_number(fields.get("substep", 0), "substep")
    )
    dp = whole_number(fields["dp"], "dp", least=1) if "dp" in fields else None
    if run is not None and not isinstance(run, str):
        raise DURABLE_BATCHES.fault("`run` is of another kind")
    if not isinstance(namespace, str) or not isinstance(content, str) or len(content) != _CONTENT_DIGITS:
        raise DURABLE_BATCHES.fault("`namespace` or `content` is of another kind")
    try:
        return namespace, position, dp, int(content, 16)
    except ValueError as error:
        raise DURABLE_BATCHES.fault(f"`content` is {content}") from error
