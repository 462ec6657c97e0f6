"""The gRPC service of a constructor: the batches of some buckets of a spec, from one copy for all ranks.

    loader = served_loader(blend, spec, buckets=[0, 1])
    with BlenderServer([*blend_services(blends), loading_service(loader)]) as server: ...

A service has one spec; every request names its id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import grpc
import pyarrow as pa

from blender.call_context import use_context
from blender.errors import EndOfData, InvalidRequest, PlanChanged
from blender.ipc import to_ipc
from blender.loading.loader import Loader
from blender.loading.roles.shared import MEMORY_BYTES
from blender.loading.spec import LoadingSpec
from blender.opened.blend import BLOCK_BYTES, Blend
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.calls import CallLimiter
from blender.serving.request_bytes import deserializer, require_wellformed
from blender.serving.server import Service
from blender.serving.service import SENT, answering, unary_methods
from blender.spec.step_range import StepRange
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
) -> Loader[Messages]:
    """A loader of messages; raises InvalidRequest for a spec that cannot be planned."""
    return Loader(
        blend, spec, messages, _size, buckets=buckets, ahead=ahead, loaders=loaders, memory_bytes=memory_bytes
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


def loading_service(loader: Loader[Messages]) -> Service:
    """The service, for a `BlenderServer`."""
    return Service(LOADING, lambda calls: BlendLoading(loader, calls).handlers())


class BlendLoading:
    """Serves the batches of a loader; its answers are bytes that go on the wire unchanged."""

    def __init__(self, loader: Loader[Messages], calls: CallLimiter) -> None:
        self._loader, self._calls = loader, calls

    def load(self, request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The rows of a range of steps that one rank reads."""
        with answering("Load", context, self._calls, request) as call:
            require_wellformed(request)
            self._calls.limits.check_steps(request.steps)
            with use_context(call):
                self._check(request)
            steps = StepRange(request.offset, request.steps or None, request.stride or 1)
            batches = self._loader.batches(steps, request.rank)
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
        spec, plan = self._loader.spec, None
        if request.HasField("offset"):
            with suppress(EndOfData):  # a step behind the last has no plan
                plan = self._loader.plan_hash(request.offset)
        return pb.SpecResponse(
            spec=spec.id,
            blend=spec.blend,
            spec_json=spec.canonical_json(),
            buckets=self._loader.buckets,
            ranks=self._loader.ranks,
            first_plan=self._loader.first_plan.hash,
            plan=plan,
        )

    def handlers(self) -> grpc.GenericRpcHandler:
        """The service as a gRPC handler."""
        load = grpc.unary_stream_rpc_method_handler(self.load, deserializer(pb.LoadRequest))
        methods = unary_methods(self._calls, self, "BlendLoading")
        return grpc.method_handlers_generic_handler(LOADING, {**methods, "Load": load})

    def _check(self, request: Any) -> None:
        """Raise InvalidRequest for another spec, rank or range, and PlanChanged for another plan."""
        spec = self._loader.spec
        if request.spec != spec.id:
            raise InvalidRequest(
                f"This constructor loads spec {spec.id}, and spec {request.spec or 'without an id'} was "
                "asked for. Give the address of its constructor, or start one with `factory loading serve`."
            )
        self._loader.consumer(request.rank)
        last = request.offset - (request.stride or 1)
        if request.HasField("last_plan") and last >= 0:
            planned = self._loader.plan_hash(last)
            if planned != request.last_plan:
                raise PlanChanged(
                    f"Rank {request.rank} read step {last:,} under plan {request.last_plan:016x}, and this "
                    f"constructor plans {planned:016x}. The code of strategy `{spec.strategy}` differs: use "
                    "one version on all constructors in a run, or go on from a checkpoint on all ranks."
                )


def _size(batch: Messages) -> int:
    return sum(map(len, batch))
