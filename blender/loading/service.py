"""The gRPC service of a constructor: the batches of some buckets of a spec, from one copy for all ranks.

    loader = served_loader(blend, spec, buckets=[0, 1])
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server: ...

A service has one spec, over its blend and the updates of it; every request names the spec's id.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
import pyarrow as pa

from blender.call_context import use_context
from blender.catalog.blends import Blends
from blender.errors import EndOfData, InvalidRequest, PlanChanged
from blender.ipc import to_ipc
from blender.loading.loader import Loader
from blender.loading.loaders import Loaders
from blender.loading.pictures.rules import Decode
from blender.loading.raw_places import RawPlaces
from blender.loading.roles.shared import MEMORY_BYTES
from blender.loading.spec import LoadingSpec
from blender.opened.blend import BLOCK_BYTES, Blend
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.calls import CallLimiter
from blender.serving.request_bytes import deserializer, require_wellformed
from blender.serving.server import Service
from blender.serving.service import SENT, answering, unary_methods
from blender.spec.step_range import StepRange
from blender.spec.whole_number import whole_number
from blender.wire.wire import OutgoingBlock, serialize

LOADING = pb.DESCRIPTOR.services_by_name["BlendLoading"].full_name

Messages = tuple[bytes, ...]
"""The responses of a step, ready for the wire."""


def served_loader(
    blend: Blend,
    spec: LoadingSpec,
    buckets: Collection[int] | None = None,
    *,
    ahead: int = 1,
    loaders: int = 1,
    memory_bytes: int = MEMORY_BYTES,
    decode: Decode = "loader",
) -> Loader[Messages]:
    """A loader of messages; raises InvalidRequest for a spec that cannot be planned."""
    return Loader(
        blend,
        spec,
        messages,
        _size,
        buckets=buckets,
        ahead=ahead,
        loaders=loaders,
        memory_bytes=memory_bytes,
        decode=decode,
    )


def messages(rows: pa.RecordBatch) -> Messages:
    """The rows of a step as equal responses of about a mebibyte; only the last one completes the step.

    A step of a little more than a mebibyte is one response: a second one costs each rank a copy of the step.
    """
    offset = rows.column("offset")[0].as_py()
    n_messages = max(1, round(rows.nbytes / BLOCK_BYTES))
    fitting = -(-len(rows) // n_messages)
    firsts = range(0, len(rows), fitting)
    return tuple(
        serialize(
            OutgoingBlock(offset, offset + (first + fitting >= len(rows)), to_ipc(rows.slice(first, fitting)))
        )
        for first in firsts
    )


def loading_service(loader: Loader[Messages], blends: Blends) -> Service:
    """The service, for a `BlenderServer`."""
    return Service(LOADING, lambda calls: BlendLoading(loader, blends, calls).handlers())


class BlendLoading:
    """Serves the batches of a loader, and of updates of its blend, as bytes that go on the wire unchanged."""

    def __init__(self, loader: Loader[Messages], blends: Blends, calls: CallLimiter) -> None:
        self._blends, self._calls = blends, calls
        self._loaders = Loaders(loader, self._update)

    def load(self, request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The rows of a range of steps that one rank reads."""
        with answering("Load", context, self._calls, request) as call:
            require_wellformed(request)
            self._calls.limits.check_steps(request.steps)
            with self._loader_over(request.blend, request.spec) as loader:
                with use_context(call):
                    _check(loader, request)
                steps = StepRange(request.offset, request.steps or None, request.stride or 1)
                batches = loader.batches(steps, request.rank)
                while True:
                    with use_context(call):
                        offset, batch = next(batches, (0, ()))
                    if not batch:
                        return
                    unsent = list(batch)
                    del batch
                    while unsent:
                        message = unsent.pop(0)
                        size = len(message)
                        self._calls.mark_sent(call)
                        yield message
                        del message
                        SENT.add("blocks", "Load")
                        SENT.add("bytes", "Load", size)
                        call.entry.count(offset + (not unsent), bytes=size)
                        self._calls.mark_read(call)

    def spec(self, request: Any) -> Any:
        """The spec, the ranks that read here, and the hashes of the plans of step 0 and of a step."""
        with self._loader_over(request.blend) as loader:
            plan = None
            if request.HasField("offset"):
                with suppress(EndOfData):  # a step behind the last has no plan
                    plan = loader.plan_hash(request.offset)
            return pb.SpecResponse(
                spec=loader.spec.id,
                blend=loader.spec.blend,
                spec_json=loader.spec.canonical_json(),
                buckets=loader.buckets,
                ranks=loader.ranks,
                first_plan=loader.first_plan.hash,
                plan=plan,
            )

    def summary(self, request: Any) -> Any:
        """A page of the metadata of a step's rows and pictures."""
        with self._loader_over(request.blend, request.spec) as loader:
            summary = loader.summary_buffer(request.offset)
        first = whole_number(request.row, "row", most=max(0, len(summary.rows) - 1))
        page = next(summary.pages(first))
        next_row = first + len(page.rows)
        return pb.SummaryResponse(
            blend=page.blend,
            sources=page.sources,
            rows=b"".join(to_ipc(page.rows)),
            pictures=None if page.pictures is None else b"".join(to_ipc(page.pictures)),
            next_row=next_row if next_row < len(summary.rows) else 0,
        )

    def plan(self, request: Any) -> Any:
        """A plan of the caller's own, checked and measured."""
        pictures = request.pictures if request.HasField("pictures") else None
        places = RawPlaces.from_arrays(
            request.bucket,
            request.bin,
            None if pictures is None else pictures.node,
            None if pictures is None else pictures.bin,
            request.encoder_level or None,
        )
        with self._loader_over(request.blend, request.spec) as loader:
            plan = loader.plan_raw(request.offset, places)
        return pb.PlanResponse(plan_json=json.dumps(plan).encode())

    def handlers(self) -> grpc.GenericRpcHandler:
        """The service as a gRPC handler."""
        load = grpc.unary_stream_rpc_method_handler(self.load, deserializer(pb.LoadRequest))
        methods = unary_methods(self._calls, self, "BlendLoading")
        return grpc.method_handlers_generic_handler(LOADING, {**methods, "Load": load})

    @contextmanager
    def _loader_over(self, blend: str, spec: str | None = None) -> Iterator[Loader[Messages]]:
        """The loader over an update of the served blend, or over that blend; raises InvalidRequest."""
        first = self._loaders.first.spec
        blend = blend or first.blend
        own = first.model_copy(update={"blend": blend}).id
        if spec not in (None, own):
            raise InvalidRequest(
                f"This constructor loads spec {own}, and spec {spec or 'without an id'} was "
                "asked for. Give the address of its constructor, or start one with `factory loading serve`."
            )
        with self._loaders.over(blend) as loader:
            yield loader

    def _update(self, blend: str) -> Blend:
        """An update of the served blend, opened; raises InvalidRequest for another blend."""
        own, ancestor = self._loaders.first.blend.id, blend
        while ancestor != own:
            ancestor = self._blends.get(ancestor).config.parent
            if not ancestor:
                raise InvalidRequest(
                    f"Blend {blend} is no update of blend {own}, which this constructor serves. Give the "
                    "address of its constructor, or start one with `factory loading serve`."
                )
        return self._blends.open(blend)


def _check(loader: Loader[Messages], request: Any) -> None:
    """Raise InvalidRequest for a rank or range that the loader lacks, and PlanChanged for another plan."""
    loader.consumer(request.rank)
    last = request.offset - (request.stride or 1)
    if request.HasField("last_plan") and last >= 0:
        planned = loader.plan_hash(last)
        if planned != request.last_plan:
            raise PlanChanged(
                f"Rank {request.rank} read step {last:,} under plan {request.last_plan:016x}, and this "
                f"constructor plans {planned:016x}. The code of strategy `{loader.spec.strategy}` differs: "
                "use one version on all constructors in a run, or go on from a checkpoint on all ranks."
            )


def _size(batch: Messages) -> int:
    return sum(map(len, batch))
