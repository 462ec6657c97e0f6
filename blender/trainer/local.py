"""Blends read in the trainer's own process, without a server: the same code, the same rows.

    blend = open_blend("4f1c...")                      # of the lake that the settings name
    for batch in blend.fetch(offset=0, steps=1000):
        train(batch.tokens, batch.targets, batch.cu_seqlens, batch.position_ids)

A `LocalBlender` has the methods of `blender.trainer.client.BlenderClient` and answers in the same records. It
may be pickled, and opens the lake again in each process; it may be forked only before its first use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from blender.call_context import CallContext
from blender.catalog.blends import DEFAULT_MEMORY_BYTES, Blends, open_blends
from blender.catalog.description import blend_record, description
from blender.errors import CallCancelled, InvalidRequest
from blender.opened.blend import Blend
from blender.records import BlendRecord, Description, ExplainedRow
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.steps import StepRows
from blender.trainer.reader import PREFETCH_BYTES, Blender, BlendHandle
from factory.settings import Settings
from factory.settings import settings as default_settings

BLOCK_BYTES = 4 << 20  # no message limits a block here, and larger blocks cost less CPU per row


@dataclass
class LocalBlender(Blender):
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
        if process != os.getpid():  # a fork lacks the native threads and would wait for them forever
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

    def opened(self, blend: str) -> Blend:
        """A blend with the readers of its sources; raises BlendNotFound and SourceGone."""
        return self._blends.open(blend)

    def get(self, blend: str) -> BlendRecord:
        return blend_record(self._blends.get(blend))

    def list(self, with_retired: bool = False) -> list[BlendRecord]:
        return [blend_record(one) for one in self._blends.list(with_retired)]

    def retire(self, blend: str) -> BlendRecord:
        return blend_record(self._blends.retire(blend))

    def describe(self, blend: str) -> Description:
        return description(self._blends.open(blend))

    def explain(self, blend: str, offset: int) -> tuple[ExplainedRow, ...]:
        return tuple(self._blends.open(blend).explain(offset))

    def _create(self, **definition: Any) -> BlendRecord:
        return blend_record(self._blends.create(**definition))

    def _update(self, **definition: Any) -> BlendRecord:
        return blend_record(self._blends.update(**definition))

    def _rows(
        self, blend: str, steps: StepRange, share: RankSlice
    ) -> tuple[Iterator[StepRows], Callable[[], None]]:
        call = CallContext(self.timeout_s)
        opened = self._blends.open(blend)
        blocks = opened.fetch(steps, share, BLOCK_BYTES, call)

        def rows() -> Iterator[StepRows]:
            for block in blocks:
                yield StepRows(block.next_offset, block.batch, begins=False)
                call.set_timeout(self.timeout_s)

        return rows(), lambda: call.cancel(CallCancelled("The reader of the fetch has stopped."))


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
