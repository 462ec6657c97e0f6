"""The gRPC services over `Blends`: convert, delegate, convert.

`blender.wire.status` maps deliberate errors to statuses and keeps their sentences. The service logs any
other error whole under an id and sends the caller the id alone.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass

from blender.call_context import use_context
from blender.catalog.blends import Blends, StoredBlend
from blender.catalog.description import blend_record, description
from blender.ipc import IpcStreams
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import Schedule, Source
from blender.rows.counts import Counts
from blender.serving.access_log import LoggedCall
from blender.serving.blend_pages import page_of_blends
from blender.serving.calls import CallLimiter, ServedCall
from blender.serving.refusals import end_call
from blender.serving.request_bytes import deserializer, require_wellformed
from blender.serving.server import Service
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.wire.messages import to_message, to_record
from blender.wire.status import to_status
from blender.wire.wire import OutgoingBlock, serialize
from factory.errors import FactoryError

log = logging.getLogger("blender")

MAX_MESSAGE_CHARACTERS = 1_000  # gRPC drops a status beyond some 16 KB, percent-encoded

_SERVICES = pb.DESCRIPTOR.services_by_name
CONFIGS, DATA = (_SERVICES[name].full_name for name in ("BlendConfigs", "BlendData"))

ENDED = Counts()
"""Ended calls, by method and name of the status."""
SENT = Counts()
"""`blocks`, `rows` and `bytes` sent, by method."""

Answer = Callable[[Any], Any]


class BlendConfigs:
    """Defines blends."""

    def __init__(self, blends: Blends) -> None:
        self._blends = blends

    def create(self, request: Any) -> Any:
        """A new blend, or the existing one."""
        sources = [to_record(Source, source) for source in request.sources]
        return _answer(self._blends.create(sources, request.seed, _schedule(request), pad=request.pad))

    def update(self, request: Any) -> Any:
        """A blend that changes another from an offset on."""
        add = [to_record(Source, one) for one in request.add]
        weights, schedule = dict(request.weights), _schedule(request)
        return _answer(
            self._blends.update(request.parent, request.offset, weights, add, schedule, pad=request.pad)
        )

    def get(self, request: Any) -> Any:
        """A blend by id."""
        return _answer(self._blends.get(request.id))

    def list(self, request: Any) -> Any:
        """A page of blends, oldest first."""
        blends = self._blends.list(request.with_retired)
        return page_of_blends(blends, request.page_size, request.page_token, _answer)

    def retire(self, request: Any) -> Any:
        """Release the snapshots of a blend."""
        return _answer(self._blends.retire(request.id))

    def handlers(self, calls: CallLimiter) -> grpc.GenericRpcHandler:
        """The service as a gRPC handler."""
        return grpc.method_handlers_generic_handler(CONFIGS, unary_methods(calls, self, "BlendConfigs"))


class BlendData:
    """Serves blends; the answers of `Fetch` are bytes that go on the wire unchanged."""

    def __init__(self, blends: Blends, calls: CallLimiter) -> None:
        self._blends, self._calls = blends, calls

    def fetch(self, request: Any, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The rows of a range of steps."""
        with answering("Fetch", context, self._calls, request) as call:
            require_wellformed(request)
            self._calls.limits.check_steps(request.steps)
            with use_context(call):
                blend = self._blends.open(request.blend)
            streams = IpcStreams(blend.schema)
            blocks = blend.fetch(
                StepRange(request.offset, request.steps or None, request.stride or 1),
                RankSlice(request.rank, request.ranks or 1),
                call=call,
            )
            for block in blocks:
                payload = streams.pieces(block.batch)
                message = serialize(OutgoingBlock(block.offset, block.next_offset, payload))
                rows, size, next_offset = block.batch.num_rows, block.batch.nbytes, block.next_offset
                del block, payload  # while a slow reader reads, hold the message alone
                self._calls.mark_sent(call)
                yield message
                del message
                SENT.add("blocks", "Fetch")
                SENT.add("rows", "Fetch", rows)
                SENT.add("bytes", "Fetch", size)
                call.entry.count(next_offset, rows=rows, bytes=size)
                self._calls.mark_read(call)

    def describe(self, request: Any) -> Any:
        """Sources, sizes and length of a blend."""
        blend = self._blends.open(request.blend)
        answer = to_message(pb.DescribeResponse, description(blend))
        answer.schema = blend.schema.serialize().to_pybytes()
        return answer

    def explain(self, request: Any) -> Any:
        """The documents behind every row of one step."""
        blend = self._blends.open(request.blend)
        if request.offset >= 0:
            rows = blend.order.mixture.rows_per_step(request.offset)
            self._calls.limits.check_explained(request.offset, rows)
        explained = [to_message(pb.ExplainedRow, row) for row in blend.explain(request.offset)]
        return pb.ExplainResponse(offset=request.offset, rows=explained)

    def handlers(self) -> grpc.GenericRpcHandler:
        """The service as a gRPC handler."""
        fetch = grpc.unary_stream_rpc_method_handler(self.fetch, deserializer(pb.FetchRequest))
        methods = unary_methods(self._calls, self, "BlendData")
        return grpc.method_handlers_generic_handler(DATA, {**methods, "Fetch": fetch})


def blend_services(blends: Blends) -> tuple[Service, ...]:
    """The two services, for a `BlenderServer`."""
    configs = Service(CONFIGS, BlendConfigs(blends).handlers)
    data = Service(DATA, lambda calls: BlendData(blends, calls).handlers())
    return configs, data


@contextmanager
def answering(
    method: str, context: grpc.ServicerContext, calls: CallLimiter, request: Any = None
) -> Iterator[ServedCall]:
    """Admit the call to `calls`, and answer it with the status of any error raised inside.

    The access log tells the blend and the range of `request`.
    """
    ended, message = grpc.StatusCode.OK, ""
    entry = LoggedCall(method, context, calls.client_of, request)
    try:
        yield calls.begin(context, method, entry)
    except FactoryError as error:
        ended, name = to_status(error)
        message = _shortened(str(error))
        end_call(context, ended, message, name)
    except GeneratorExit:  # nobody reads the stream any more
        ended = grpc.StatusCode.CANCELLED
        raise
    except BaseException:  # a panic of native code too; else the call has no answer and its caller waits
        ended = grpc.StatusCode.INTERNAL
        incident = uuid.uuid4().hex[:12]
        log.exception("incident %s", incident)
        message = f"Blender failed unexpectedly. Look into its log for incident {incident}."
        end_call(context, ended, message)
    finally:
        ENDED.add(method, ended.name)
        entry.end(ended.name, message)


def unary_methods(calls: CallLimiter, servicer: object, service: str) -> dict[str, grpc.RpcMethodHandler]:
    """Handlers of the methods with one answer, by name; `servicer` has the names in lower case."""
    methods = [method for method in _SERVICES[service].methods if not method.server_streaming]
    return {method.name: _unary(calls, method, getattr(servicer, method.name.lower())) for method in methods}


def _unary(calls: CallLimiter, method: Any, answer: Answer) -> grpc.RpcMethodHandler:
    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        with answering(method.name, context, calls, request) as call, use_context(call):
            result = answer(require_wellformed(request))
            call.entry.note_creation(result)
            calls.mark_sent(call)
            return result

    return grpc.unary_unary_rpc_method_handler(
        handle, deserializer(GetMessageClass(method.input_type)), lambda message: message.SerializeToString()
    )


def _answer(stored: StoredBlend) -> Any:
    return to_message(pb.Blend, blend_record(stored))


def _schedule(request: Any) -> Schedule | None:
    return to_record(Schedule, request.schedule) if request.HasField("schedule") else None


def _shortened(message: str) -> str:
    """The message, without its middle if it is too long: its remedy is at the end."""
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    half = MAX_MESSAGE_CHARACTERS // 2
    return f"{message[:half]} ... {message[-half:]}"
