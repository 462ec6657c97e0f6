"""One copy of a batch for the ranks that share it.

    shared = SharedBatches(constructor, consumers, "row", size=lambda rows: rows.nbytes)
    shared.make_ahead(offset=1_001, rank=3)     # for a later call
    shared.batch(offset=1_000, rank=3)          # made at the first call of a rank of its bucket
    shared.taken(offset=1_000, rank=3)          # dropped when each of these ranks took it

A batch is made for nobody's call in particular: the rank that asked first may die while others wait. A rank
that comes late, after the batch was dropped, gets an equal one made again.

Ranks of a bucket stay within `LEAD_STEPS` of each other while they all read. A rank with small batches,
such as a pipeline stage that gets lengths alone, would else be ahead by as many steps as the network buffers
hold, and each of these batches would be made for it and made again for the others.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from blender.call_context import CallContext, current_context
from blender.chunks import Chunking
from blender.errors import Stalled
from blender.loading.roles.constructor import View
from blender.loading.runtime.threads import Mailbox
from blender.loading.tree import Consumer

MEMORY_BYTES = 256 << 20
LEAD_STEPS = 32
HISTORY = 4 * LEAD_STEPS  # older batches wait for ranks that went on elsewhere
_PATIENCE_S = 0.5  # a rank that takes nothing for so long holds nobody up
_REMEMBERED = 4_096  # batches that were dropped before all ranks took them
_MAKE_S = 60.0
_LOOK_S = 0.05

BatchType = TypeVar("BatchType")


@dataclass
class _Entry(Generic[BatchType]):
    views: Future[Mapping[View, BatchType]]
    missing: set[int]
    """Ranks that have not taken it."""
    n_bytes: int = field(default=0)

    @property
    def has_failed(self) -> bool:
        """Whether making it failed."""
        return self.views.done() and self.views.exception() is not None


class SharedBatches(Generic[BatchType]):
    """The batches of a constructor, each made once and held until all its ranks took it.

    `memory_bytes` bounds the batches held for ranks that lag behind. Without `for_late`, nothing is held for
    ranks that have not read yet: in a trainer's process most ranks of a bucket never do. Safe for many
    threads.
    """

    def __init__(
        self,
        constructor: Mailbox,
        consumers: Collection[Consumer],
        chunking: Chunking,
        size: Callable[[BatchType], int],
        memory_bytes: int = MEMORY_BYTES,
        *,
        for_late: bool = True,
        nodes: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        """`nodes` are the nodes of the encoder that each rank reads pictures for."""
        self._nodes = nodes or {}
        self._constructor, self._chunking, self._size = constructor, chunking, size
        self._consumers = {consumer.rank: consumer for consumer in consumers}
        self._memory_bytes, self._for_late = memory_bytes, for_late
        self._entries: OrderedDict[tuple[int, int], _Entry[BatchType]] = OrderedDict()
        self._asleep = set(self._consumers)
        """Ranks that have taken nothing yet, or took nothing while another waited for them."""
        self._took: OrderedDict[tuple[int, int], set[int]] = OrderedDict()
        """Ranks that took a batch before it was dropped; it is made again for the others."""
        self._lock = threading.RLock()  # a batch may be ready before its entry is
        self._was_taken = threading.Condition(self._lock)

    def batch(self, offset: int, rank: int) -> BatchType:
        """A rank's part of a step, waited for within the call of this thread.

        Raises InvalidRequest, EndOfData, Stalled and the errors of reading.
        """
        consumer, call = self._consumers[rank], current_context()
        key = offset, consumer.bucket
        self._wait_for_others(call, offset, consumer)
        while True:
            while (entry := self._entry(key, call)) is None:  # the constructor's queue is full
                call.wait(_LOOK_S, lambda: _stalled(offset))
            try:
                views = call.result(entry.views, lambda: _stalled(offset))
            except Stalled:
                if not entry.has_failed or call.remaining_s <= 0:
                    raise
                continue  # it was made ahead, in less time than this call has
            return views[View.of(consumer, self._chunking, self._nodes.get(rank, ()))]

    def make_ahead(self, offset: int, rank: int) -> None:
        """Begin to make a batch that is not there, unless the constructor is busy or memory is used up."""
        key = offset, self._consumers[rank].bucket
        with self._lock:
            held = sum(entry.n_bytes for entry in self._entries.values())
            if key not in self._entries and held < self._memory_bytes:
                made = self._constructor.hint("make", *key, call=CallContext(_MAKE_S))
                if made is not None:
                    self._add(key, made)

    def taken(self, offset: int, rank: int) -> None:
        """Note that a rank has its batch."""
        key = offset, self._consumers[rank].bucket
        with self._lock:
            self._asleep.discard(rank)
            self._was_taken.notify_all()
            entry = self._entries.get(key)
            if entry is not None:
                entry.missing.discard(rank)
                if not entry.missing:
                    del self._entries[key]
                elif not self._for_late and entry.missing <= self._asleep:
                    self._forget(key)

    @property
    def held(self) -> int:
        """The bytes of the batches that are held."""
        with self._lock:
            return sum(entry.n_bytes for entry in self._entries.values())

    def _wait_for_others(self, call: CallContext, offset: int, consumer: Consumer) -> None:
        """Wait while ranks that read are `LEAD_STEPS` behind this one."""
        with self._was_taken:
            patient_until = time.monotonic() + _PATIENCE_S
            while len(behind := self._missed_by_others(offset, consumer)) >= LEAD_STEPS:
                self._was_taken.wait(min(_LOOK_S, call.remaining_s))
                call.check_deadline(lambda: _stalled(offset))
                if self._missed_by_others(offset, consumer)[:1] != behind[:1]:
                    patient_until = time.monotonic() + _PATIENCE_S
                elif time.monotonic() >= patient_until:
                    self._asleep |= behind[0]

    def _missed_by_others(self, offset: int, consumer: Consumer) -> list[set[int]]:
        """For each batch that this rank took, the ranks awake that did not; oldest first."""
        taken = [
            entry.missing - self._asleep
            for (step, bucket), entry in self._entries.items()
            if bucket == consumer.bucket
            and offset - HISTORY <= step < offset
            and consumer.rank not in entry.missing
        ]
        return [ranks for ranks in taken if ranks]

    def _add(self, key: tuple[int, int], made: Future[Mapping[View, BatchType]]) -> _Entry[BatchType]:
        entry = self._entries[key] = _Entry(made, self._ranks_of(key[1]) - self._took.pop(key, set()))
        made.add_done_callback(lambda _: self._make_room(key, entry))
        return entry

    def _forget(self, key: tuple[int, int]) -> _Entry[BatchType]:
        """Drop a batch that some ranks did not take."""
        entry = self._entries.pop(key)
        self._took[key] = self._ranks_of(key[1]) - entry.missing
        while len(self._took) > _REMEMBERED:
            self._took.popitem(last=False)
        return entry

    def _ranks_of(self, bucket: int) -> set[int]:
        return {rank for rank, consumer in self._consumers.items() if consumer.bucket == bucket}

    def _make_room(self, key: tuple[int, int], entry: _Entry[BatchType]) -> None:
        """Count a batch that was made, and drop the oldest others for which there is no room."""
        with self._lock:
            if entry.has_failed:  # those who wait have its error; the next call makes it again
                if self._entries.get(key) is entry:
                    del self._entries[key]
                return
            entry.n_bytes = sum(self._size(view) for view in entry.views.result().values())
            held = sum(entry.n_bytes for entry in self._entries.values())
            for oldest in [other for other in self._entries if other != key]:
                if held <= self._memory_bytes:
                    return
                if self._entries[oldest].views.done():
                    held -= self._forget(oldest).n_bytes

    def _entry(self, key: tuple[int, int], call: CallContext) -> _Entry[BatchType] | None:
        """The batch at `key`, begun if it is not there; None while the constructor's queue is full.

        No thread waits while it holds the lock: a constructor needs it to hand a batch over.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or entry.has_failed:  # perhaps ahead, and nobody was told
                made = self._constructor.hint("make", *key, call=CallContext(max(_MAKE_S, call.remaining_s)))
                entry = None if made is None else self._add(key, made)
            return entry


def _stalled(offset: int) -> str:
    return f"The batch of step {offset:,} was not ready in time. Ask again, or give the call more time."
