"""Writes batches from any Python iterator, each exactly once, even if processes are killed.

    create_namespace("s3://bucket/run7", Mesh(dp=32), lanes=4)
    with BatchWriter("s3://bucket/run7", lane=0) as writer:
        for columns, offset in rollouts(start=writer.offset):       # {"tokens": [256, 4096]}, 12800
            writer.put(cut(columns, Mesh(dp=32)), offset)
        writer.finish()                                             # no batch follows on this lane

`put` stores a batch. A thread commits batches in the order of the puts while production continues; a commit
makes its batches visible to all ranks at once, and stores the offset. The next process to open the lane
takes it over and resumes at `offset`; its predecessor, if alive, gets Fenced and has committed nothing since.

The end of the block commits all batches. An interrupt (Ctrl-C) waits a second for that, and no longer for an
unreachable store; uncommitted batches are produced again, as after a kill.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from blender.global_batches.commit_figures import CommitFigures
from blender.global_batches.committer import Committer, stop
from blender.global_batches.errors import InvalidBatch, LaneClosed, WriterClosed
from blender.global_batches.format.columns import Array
from blender.global_batches.format.slices import EncodedBatch, Slices, encode
from blender.global_batches.json_values import Json, small_json
from blender.global_batches.lag import LagLimit
from blender.global_batches.log import checkpoints, log, names
from blender.global_batches.log.client import incarnation_of_process
from blender.global_batches.log.operations import put as put_object
from blender.global_batches.log.state import Descriptor
from blender.global_batches.namespace import open_namespace, require_unchanged
from blender.global_batches.policies import AdaptiveCommit, Policy
from blender.global_batches.store.namespace_store import PATIENCE_S, open_store
from blender.spec.whole_number import whole_number
from factory.settings import Settings


class BatchWriter:
    """The producer of one lane of a namespace, for one thread; opening it takes the lane over.

    `policy` decides how often batches are committed. With `max_lag`, `put` waits while the batch is that many
    steps ahead of the oldest step that an open run holds, or of the step that readers wait for; the wait ends
    with the call that this thread works for. The writer waits up to `patience_s` for a store that does not
    answer. Raises NamespaceNotFound, NamespaceDiffers if the namespace has no such lane, Fenced if another
    process opens the lane at this moment, and UnsafeStore if the store hides a new object.
    """

    def __init__(
        self,
        uri: str | os.PathLike[str],
        lane: str | int = 0,
        *,
        settings: Settings | None = None,
        policy: Policy | None = None,
        max_lag: int | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.lane = lane = names.checked_lane(str(lane) if isinstance(lane, int) else lane)
        self._store = open_store(uri, settings, patience_s=patience_s)
        self.namespace = open_namespace(self._store)
        client = self.namespace.client()
        self._lag = None
        if max_lag is not None:
            max_lag = whole_number(max_lag, "max_lag", least=1)
            self._lag = LagLimit(self._store, self.namespace, lane, max_lag)
        self.figures = CommitFigures()
        """What the attempts of this writer came to."""
        report = self.figures.report()
        claim, state = self._store.run(log.take(client, lane, incarnation_of_process(), report))
        self._store.run(log.require_read_after_write(client, state))
        state = self._store.run(checkpoints.maintain(client, state))
        self._opened = state.lane(lane)
        self.is_finished = claim is None
        """Whether the lane is closed: it takes no more batches."""
        self._is_closed = False
        self._committer: Committer | None = None
        if claim is not None:
            self._committer = Committer(
                self._store,
                client,
                claim,
                state,
                policy or AdaptiveCommit(),
                self.figures,
                partial(require_unchanged, self._store, self.namespace),
            )
            # The thread of a forgotten writer commits what was put, and ends.
            weakref.finalize(self, self._committer.drain).atexit = False

    @property
    def offset(self) -> Json:
        """The offset at which the producer resumes: of the last batch put; None before the first."""
        return self._opened.offset if self._committer is None else self._committer.offset

    @property
    def sequence(self) -> int:
        """The number of batches of the lane, pending ones included."""
        return self._opened.sequence if self._committer is None else self._committer.sequence

    @property
    def next_step(self) -> int:
        """The step of the next batch. Raises InvalidRequest in arrival order, where the log numbers it."""
        return self.namespace.step_of(self.lane, self.sequence)

    @property
    def committed(self) -> int:
        """The number of batches of the lane that are visible."""
        return self._opened.sequence if self._committer is None else self._committer.lane.sequence

    def put(self, slices: Slices | Sequence[Mapping[str, Array]], offset: Json, origin: Json = None) -> None:
        """Store a batch and let it be committed; the producer resumes at `offset` after it.

        `slices` has one dict of arrays for each dp index, or, for a mesh with cp, is the result of `cut`.
        `offset` and `origin`, the producer's own record of the source, are JSON of at most 4 KiB. Raises
        InvalidBatch, and the error of an earlier commit: Fenced, or StoreUnavailable.
        """
        committer = self._open_committer()
        committer.require_open()
        offset = small_json(offset, "offset")
        self._wait_for_room(committer)
        encoded = encode(self._checked(slices), origin)
        # A name for each try: of a put that failed, or was interrupted, a request may still arrive.
        nonce = secrets.token_hex(4)
        name = names.batch(self.lane, self._opened.epoch, committer.sequence, nonce)
        self._store.run(put_object(name, encoded.body))
        committer.require_open()
        committer.add(_descriptor(name, encoded), offset)

    def flush(self) -> None:
        """Wait until every batch that was put is committed."""
        if self._committer is not None:
            self._committer.flush()

    def finish(self) -> None:
        """Commit all batches and close the lane for good; a second call does nothing."""
        if not self.is_finished:
            self._open_committer().flush(close_lane=True)
            self.is_finished = True
            self.close()

    def close(self) -> None:
        """Commit all batches and end the writer; the lane stays open for the next one.

        A second call does nothing, nor does a call in a forked process.
        """
        if self._is_closed or self._committer is None or not self._committer.is_in_starting_process:
            return
        self._is_closed = True
        try:
            self._committer.flush()
        except BaseException:
            stop([self._committer])
            raise
        self._committer.drain()
        self._committer.join()
        self._committer.raise_error()

    def __enter__(self) -> BatchWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            stop_writers([self])  # whoever interrupts does not wait for a store that may be away
        else:
            self.close()

    def _wait_for_room(self, committer: Committer) -> None:
        """Wait while the next batch is too far ahead."""
        if self._lag is None:
            return

        def require_open() -> None:
            self._open_committer()  # another thread may have stopped this writer
            committer.require_open()

        lanes = None if self.figures.window is None else self.figures.lanes
        self._lag.wait(self.sequence, committer.lane_of_claim, lanes, require_open)

    def _open_committer(self) -> Committer:
        if self._committer is None or self.is_finished:
            raise LaneClosed(f"Lane `{self.lane}` is finished. Write further batches to another lane.")
        if self._is_closed:
            raise WriterClosed(f"This writer of lane `{self.lane}` is closed. Open the lane by another one.")
        return self._committer

    def _checked(self, slices: Slices | Sequence[Mapping[str, Array]]) -> Slices:
        dp, chunks = self.namespace.dp, self.namespace.chunks
        if isinstance(slices, Mapping):
            raise InvalidBatch(
                "One dict of columns was put. Give one for each dp index in a list, or the result of `cut`."
            )
        if not isinstance(slices, Slices):
            return Slices(tuple(slices), dp, chunks)
        if (slices.dp, slices.chunks) != (dp, chunks):
            raise InvalidBatch(
                f"A batch of {slices.dp} dp indexes of {slices.chunks} chunks was put, and the namespace has "
                f"{dp} of {chunks}. Cut it for the mesh dp={dp},cp={self.namespace.cp}."
            )
        return slices


def stop_writers(writers: Collection[BatchWriter]) -> None:
    """End writers soon, in other threads too, as an interrupt of their block does.

    They have a second to commit their batches; uncommitted ones are produced again.
    """
    for writer in writers:
        writer._is_closed = True
    stop([writer._committer for writer in writers if writer._committer is not None])


def _descriptor(name: str, encoded: EncodedBatch) -> Descriptor:
    return Descriptor(
        step=0,  # the log numbers it
        name=name,
        n_bytes=len(encoded.body),
        footer_offset=encoded.footer_offset,
        footer_length=encoded.footer_length,
        footer_hash=encoded.footer_hash,
    )
