"""Blends read in the trainer's own process, without a server: the same code below, the same rows.

    blend = open_blend("4f1c...")                      # of the lake that the settings name
    for batch in blend.fetch(offset=0, steps=1000):
        train(batch.tokens, batch.targets, batch.cu_seqlens, batch.position_ids)

A `LocalBlender` has the methods of `blender.client.BlenderClient` and answers in the same records. It can
travel to other processes by pickle, and opens the lake anew in each; by fork only before its first use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from blender.batch import Batch
from blender.call_context import CallContext
from blender.catalog.blends import DEFAULT_MEMORY_BYTES, Blends, open_blends
from blender.catalog.description import blend_record, description
from blender.client import PREFETCH_BYTES
from blender.errors import CallCancelled, InvalidRequest
from blender.opened.blend import Block
from blender.prefetch import Prefetcher
from blender.reader import BlendHandle
from blender.records import BlendRecord, Description, ExplainedRow, Schedule, Source
from blender.spec.ranks import RankSlice
from blender.steps import Rows, batches
from factory.settings import Settings
from factory.settings import settings as default_settings

BLOCK_BYTES = 4 << 20  # no message limits a block here, and larger blocks cost less CPU per row


@dataclass
class LocalBlender:
    """The blends of a lake, read under `memory_bytes` of decoded rows; safe for many threads.

    `timeout_s` bounds the wait for the next step of a fetch, `prefetch_bytes` what each fetch
    holds before it is read. Raises the classes of `blender.errors`.
    """

    settings: Settings
    memory_bytes: int = DEFAULT_MEMORY_BYTES
    timeout_s: float = 60.0
    prefetch_bytes: int = PREFETCH_BYTES
    _opened: tuple[int, Blends] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def _blends(self) -> Blends:
        if self._opened is None:
            self._opened = os.getpid(), open_blends(self.settings, self.memory_bytes)
        process, blends = self._opened
        if process != os.getpid():  # a fork lacks the native threads and would wait for them for ever
            raise InvalidRequest(
                "This process was forked after its parent had opened the lake. Start workers with `spawn` or "
                "`forkserver`, or read through a server."
            )
        return blends

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_opened": None}

    def open(self, blend: str) -> BlendHandle:
        """A blend by id, as a trainer reads it; raises BlendNotFound and SourceGone."""
        return BlendHandle(self, self._blends.open(blend).id)

    def create(
        self,
        sources: Sequence[Source],
        seed: int = 0,
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> BlendRecord:
        """Define a blend by its sources' weights or by a schedule; the same definition has the same id.

        `pad` admits sources with rows of different lengths and pads them to the longest.
        """
        return blend_record(self._blends.create(sources, seed, schedule, pad=pad))

    def update(
        self,
        parent: str,
        offset: int,
        weights: Mapping[str, int] | None = None,
        add: Sequence[Source] = (),
        schedule: Schedule | None = None,
        *,
        pad: bool = False,
    ) -> BlendRecord:
        """The blend equal to `parent` before step `offset`, with `weights` by source name from there on.

        A source that `weights` does not name keeps its weight; a `schedule` replaces all weights. An update
        of a padded blend pads too; `pad` admits added sources of other lengths.
        """
        return blend_record(self._blends.update(parent, offset, weights or {}, add, schedule, pad=pad))

    def get(self, blend: str) -> BlendRecord:
        """A blend by id."""
        return blend_record(self._blends.get(blend))

    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        """All blends, oldest first."""
        return [blend_record(one) for one in self._blends.list(with_retired)]

    def retire(self, blend: str) -> BlendRecord:
        """Release the blend's snapshots for maintenance."""
        return blend_record(self._blends.retire(blend))

    def describe(self, blend: str) -> Description:
        """Sources, sizes, weights and length of a blend."""
        return description(self._blends.open(blend))

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        """The documents behind every row of a step."""
        return tuple(self._blends.open(blend).explain(offset))

    def fetch(
        self,
        blend: str,
        offset: int = 0,
        steps: int | None = None,
        rank: int = 0,
        ranks: int = 1,
        stride: int = 1,
    ) -> Iterator[Batch]:
        """One `Batch` per step from `offset` on, as from `blender.client.BlenderClient.fetch`."""
        if steps == 0:
            return
        call = CallContext(self.timeout_s)
        opened = self._blends.open(blend)
        blocks = opened.fetch(offset, steps or 0, RankSlice(rank, ranks), BLOCK_BYTES, stride, call)
        rows = _rows(blocks, call, self.timeout_s)

        def cancel() -> None:
            call.cancel(CallCancelled("The reader of the fetch has stopped."))

        with Prefetcher(rows, self.prefetch_bytes, lambda one: int(one.batch.nbytes), cancel) as prefetched:
            yield from batches(prefetched, offset, stride)


def _rows(blocks: Iterable[Block], call: CallContext, timeout_s: float) -> Iterator[Rows]:
    for block in blocks:
        yield Rows(block.next_offset, block.batch, begins=False)
        call.set_timeout(timeout_s)


def open_blend(
    blend: str,
    settings: Settings | None = None,
    *,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    prefetch_bytes: int = PREFETCH_BYTES,
) -> BlendHandle:
    """A blend of the lake that `settings` names (by default the environment's), read in this process.

    Raises BlendNotFound and SourceGone.
    """
    blender = LocalBlender(settings or default_settings(), memory_bytes, prefetch_bytes=prefetch_bytes)
    return blender.open(blend)
