"""A loader in the trainer's own process, without a service.

    loading = open_loading(spec)
    for step in loading.read(StepRange(0, 1_000), rank):
        for microbatch in step.microbatches: ...

Its threads start in each process that reads, and end with the handle.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Generator, Mapping
from typing import Any

import pyarrow as pa

from blender.call_context import CallContext, use_context
from blender.errors import CallCancelled, InvalidRequest
from blender.loading.buffer_summary import BufferSummary
from blender.loading.handle import LoadingHandle
from blender.loading.loader import Loader
from blender.loading.loaders import Loaders
from blender.loading.pictures.rules import Decode
from blender.loading.raw_places import RawPlaces
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.loading.stretches import Stretch
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.local import LocalBlender
from blender.trainer.reader import BlendHandle
from factory.settings import Settings
from factory.settings import settings as default_settings


class EmbeddedLoading(LoadingHandle):
    """Steps of a spec, read in this process; safe for many threads.

    `ahead` steps are prepared while one is used; `timeout_s` bounds the wait for each step. It may be pickled
    and starts its threads in each process.
    """

    def __init__(
        self,
        spec: LoadingSpec,
        blender: LocalBlender,
        *,
        ahead: int = 1,
        timeout_s: float = 60.0,
        decode: Decode = "loader",
    ) -> None:
        """Raises BlendNotFound, SourceGone, and InvalidRequest for a spec that cannot be planned."""
        super().__init__(spec.id, spec.blend)
        self._first_spec = spec
        self._blender, self._ahead, self._timeout_s, self._decode = blender, ahead, timeout_s, decode
        self._lock = threading.Lock()
        self._opened: tuple[int, Loaders[pa.RecordBatch]] | None = None
        self._loaders  # noqa: B018 - opens, so that a wrong spec is refused here

    @property
    def loading_spec(self) -> LoadingSpec:
        """The spec, after `reweight` of the last blend."""
        return self._first_spec.model_copy(update={"blend": self.id})

    @property
    def blend(self) -> BlendHandle:
        return self._blender.open(self.id)

    @property
    def mesh(self) -> Mesh:
        return self._first_spec.mesh

    def _steps(self, stretch: Stretch, steps: StepRange, share: int) -> Generator[LoadedStep]:
        call = CallContext()
        with self._loaders.over(stretch.blend) as loader:
            batches = loader.batches(steps, share)
            try:
                while True:
                    call.set_timeout(self._timeout_s)
                    with use_context(call):
                        offset, rows = next(batches, (None, None))
                    if offset is None or rows is None:
                        return
                    yield LoadedStep(offset, rows)
            finally:
                call.cancel(CallCancelled("The reader of the steps has stopped."))

    def _summary(self, stretch: Stretch, offset: int) -> BufferSummary:
        with self._loaders.over(stretch.blend) as loader:
            return loader.summary_buffer(offset)

    def _plan_raw(self, stretch: Stretch, offset: int, places: RawPlaces) -> dict[str, Any]:
        with self._loaders.over(stretch.blend) as loader:
            return loader.plan_raw(offset, places)

    def _updated(self, offset: int, weights: Mapping[str, int]) -> tuple[str, str]:
        blend = self._blender.update(self.id, offset, weights).id
        call = CallContext(self._timeout_s)
        with self._loaders.over(blend) as loader, use_context(call):
            loader.plan_hash(offset)
            return blend, loader.spec.id

    def close(self) -> None:
        """End the loader's threads."""
        with self._lock:
            if self._opened is not None and self._opened[0] == os.getpid():
                self._opened[1].close()
            self._opened = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_opened")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock(), _opened=None)

    @property
    def _loaders(self) -> Loaders[pa.RecordBatch]:
        with self._lock:
            if self._opened is None:
                blend = self._blender.opened(self._first_spec.blend)
                first = Loader(
                    blend,
                    self._first_spec,
                    _as_is,
                    _size,
                    ahead=self._ahead,
                    for_late=False,
                    decode=self._decode,
                )
                loaders = Loaders(first, self._blender.opened)
                weakref.finalize(self, loaders.end)  # its threads would keep it for ever
                self._opened = os.getpid(), loaders
            process, loaders = self._opened
        if process != os.getpid():  # a fork lacks the threads
            raise InvalidRequest(
                "This process was forked after its parent had opened the loader. Start workers with `spawn` "
                "or `forkserver`, or read through a service."
            )
        return loaders


def open_loading(
    spec: LoadingSpec,
    settings: Settings | None = None,
    *,
    ahead: int = 1,
    timeout_s: float = 60.0,
    decode: Decode = "loader",
) -> EmbeddedLoading:
    """A loader in this process, over the lake that `settings` names (by default the environment's).

    Raises BlendNotFound, SourceGone and InvalidRequest.
    """
    blender = LocalBlender(settings or default_settings())
    return EmbeddedLoading(spec, blender, ahead=ahead, timeout_s=timeout_s, decode=decode)


def _as_is(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def _size(rows: pa.RecordBatch) -> int:
    return int(rows.nbytes)
