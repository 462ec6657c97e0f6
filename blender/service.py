"""The two gRPC services over `Blends`: convert, delegate, convert.

An error raised on purpose becomes its status of `blender.status`, its sentence unchanged. Any other is
logged whole under an id, and the caller gets the id alone.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc

from blender.blends import Blends
from blender.convert import blend_to, description_to, explanation_to, source_from
from blender.errors import Busy
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.proto.blender.v1 import blender_pb2_grpc as pb_grpc
from blender.status import ERROR_KEY, to_status
from blender.wire import WireBlock, serialize, to_ipc
from factory.errors import FactoryError

log = logging.getLogger("blender")

MAX_MESSAGE_CHARACTERS = 1_000  # gRPC drops a status of more than some 16 KB, percent-encoded

CONFIGS, DATA = (pb.DESCRIPTOR.services_by_name[name].full_name for name in ("BlendConfigs", "BlendData"))


class Slots:
    """The calls of both services that are answered at once; health checks and reflection need none."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._free = threading.BoundedSemaphore(n)

    def take(self, context: grpc.ServicerContext) -> None:
        """Take a slot until the call ends; raises Busy where there is none."""
        if not self._free.acquire(blocking=False):
            raise Busy(
                f"Blender answers {self.n} calls already. Ask again, ask another Blender of the lake, or "
                "start it with more --workers."
            )
        if not context.add_callback(self._free.release):
            self._free.release()  # the call has ended before it began


class BlendConfigs(pb_grpc.BlendConfigsServicer):
    """Defines blends."""

    def __init__(self, blends: Blends, slots: Slots) -> None:
        self._blends, self._slots = blends, slots

    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802 - the protocol's name
        with answering(context, self._slots):
            return blend_to(self._blends.create([source_from(one) for one in request.sources], request.seed))

    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        with answering(context, self._slots):
            add = [source_from(one) for one in request.add]
            return blend_to(self._blends.update(request.parent, request.offset, dict(request.weights), add))

    def Get(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        with answering(context, self._slots):
            return blend_to(self._blends.get(request.id))

    def List(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        with answering(context, self._slots):
            return pb.ListResponse(blends=[blend_to(one) for one in self._blends.list(request.with_retired)])

    def Retire(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        with answering(context, self._slots):
            return blend_to(self._blends.retire(request.id))


class BlendData:
    """Serves blends; `Fetch` answers in `WireBlock`s, which `handlers` puts on the wire as they are."""

    def __init__(self, blends: Blends, slots: Slots) -> None:
        self._blends, self._slots = blends, slots

    def fetch(self, request: Any, context: grpc.ServicerContext) -> Iterator[WireBlock]:
        """The rows of a range of steps."""
        with answering(context, self._slots):
            blend = self._blends.open(request.blend)
            for block in blend.fetch(
                request.offset,
                request.steps,
                request.rank,
                request.ranks or 1,
                stride=request.stride or 1,
            ):
                yield WireBlock(block.offset, block.next_offset, to_ipc(block.batch))

    def describe(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Sources, sizes and length of a blend."""
        with answering(context, self._slots):
            return description_to(self._blends.open(request.blend))

    def explain(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The documents behind every row of one step."""
        with answering(context, self._slots):
            return explanation_to(request.offset, self._blends.open(request.blend).explain(request.offset))

    def handlers(self) -> grpc.GenericRpcHandler:
        """The service as gRPC takes it, `Fetch` with the hand-written serializer."""
        return grpc.method_handlers_generic_handler(
            DATA,
            {
                "Fetch": grpc.unary_stream_rpc_method_handler(
                    self.fetch, pb.FetchRequest.FromString, serialize
                ),
                "Describe": grpc.unary_unary_rpc_method_handler(
                    self.describe, pb.DescribeRequest.FromString, pb.DescribeResponse.SerializeToString
                ),
                "Explain": grpc.unary_unary_rpc_method_handler(
                    self.explain, pb.ExplainRequest.FromString, pb.ExplainResponse.SerializeToString
                ),
            },
        )


@contextmanager
def answering(context: grpc.ServicerContext, slots: Slots) -> Iterator[None]:
    """Answer the call, which takes a slot, with the status of whatever is raised inside."""
    try:
        slots.take(context)
        yield
    except FactoryError as error:
        code, name = to_status(error)
        _abort(context, code, str(error), name)
    except Exception:
        incident = uuid.uuid4().hex[:12]
        log.exception("incident %s", incident)
        message = f"Blender failed unexpectedly. Its log has the details under incident {incident}."
        _abort(context, grpc.StatusCode.INTERNAL, message, "")


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, message: str, name: str) -> NoReturn:
    context.set_trailing_metadata(((ERROR_KEY, name),))
    context.abort(code, _shortened(message))
    raise AssertionError("abort returned")


def _shortened(message: str) -> str:
    """The message without its middle where it quotes or lists too much: its remedy is at the end."""
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    half = MAX_MESSAGE_CHARACTERS // 2
    return f"{message[:half]} ... {message[-half:]}"
