"""Admits calls between their headers and their message, so that a client can occupy little meanwhile.

gRPC hands a call to its handler once the headers have arrived. gRPC's handlers of one request then block a
thread until the message arrives, without limit. These handlers declare request streams instead, which look
the same to a client: they start at the headers, wait for the message in a `WaitingRoom`, then proceed as
usual.

    kind                     threads                 slots for waiting calls
    the services of blends   one per allowed call    MESSAGE_SLOTS, until the message arrives
    health                   its own                 HEALTH_SLOTS, until the message arrives
    watches of health        their own               WATCH_SLOTS, as long as the watch lasts
    reflection               its own                 REFLECTION_SLOTS, as long as the stream lasts

So a flood of one kind takes nothing from the others. A call that is refused at its headers, such as one
without the token that the server requires (`blender.serving.security`), needs no message and holds no slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from blender.errors import InvalidRequest
from blender.serving.client_identity import ClientOf
from blender.serving.refusals import refusal, refuse
from blender.serving.transport import MAX_METADATA_BYTES
from blender.serving.waiting_room import Slot, WaitingRoom

MESSAGE_SLOTS = 64
HEALTH_SLOTS, REFLECTION_SLOTS = 16, 8
WATCH_SLOTS = 64  # a client whose channel checks health watches for as long as it is connected

_SPARE_THREADS = 8  # to refuse calls, and for waits that have not yet noticed the loss of their slot

Continuation = Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None]


class Admission(grpc.ServerInterceptor):
    """Gives each method its threads and its waiting room; the services of blends answer `calls` at once."""

    def __init__(self, calls: int, message_s: float, client_of: ClientOf) -> None:
        self.threads = _threads(calls + MESSAGE_SLOTS, "blender")
        """Answer the calls of the services of blends."""
        self._health = _threads(HEALTH_SLOTS, "blender-health")
        self._watches = _threads(WATCH_SLOTS, "blender-watches")
        self._reflection = _threads(REFLECTION_SLOTS, "blender-reflection")
        self._message_room = WaitingRoom(MESSAGE_SLOTS, message_s, client_of)
        self._health_room = WaitingRoom(HEALTH_SLOTS, message_s)
        self._watch_room = WaitingRoom(WATCH_SLOTS)
        self._reflection_room = WaitingRoom(REFLECTION_SLOTS, message_s)
        self._admitted: dict[str, grpc.RpcMethodHandler] = {}
        self._too_large = refusal(
            InvalidRequest(f"The metadata of a call exceeds {MAX_METADATA_BYTES:,} bytes. Send less.")
        )

    def __len__(self) -> int:
        """Calls of the services of blends that wait for their messages."""
        return len(self._message_room)

    def sweep(self) -> None:
        """End the waits that have lasted too long."""
        for room in (self._message_room, self._health_room, self._reflection_room):
            room.sweep()

    def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        """A handler that waits in a room; None for an unknown method, which gRPC refuses."""
        sizes = (len(key) + len(value) for key, value in handler_call_details.invocation_metadata)
        if sum(sizes) > MAX_METADATA_BYTES:
            return self._too_large
        method = handler_call_details.method
        if method not in self._admitted:
            handler = continuation(handler_call_details)
            if handler is None:
                return None
            self._admitted[method] = self._admit(method, handler)
        return self._admitted[method]

    def _admit(self, path: str, handler: grpc.RpcMethodHandler) -> grpc.RpcMethodHandler:
        service, _, method = path.removeprefix("/").partition("/")
        if service == reflection.SERVICE_NAME:
            behavior, threads = _request_stream(handler, method, self._reflection_room), self._reflection
        elif service != health.SERVICE_NAME:
            behavior, threads = _one_request(handler, method, self._message_room), self.threads
        elif handler.response_streaming:
            behavior, threads = _watch(handler, method, self._watch_room), self._watches
        else:
            behavior, threads = _one_request(handler, method, self._health_room), self._health
        return _handler(handler, behavior, threads)


def _one_request(handler: grpc.RpcMethodHandler, method: str, room: WaitingRoom) -> Any:
    """The behavior of `handler` for one request, for which it waits in `room`."""
    behavior: Any = handler.unary_stream if handler.response_streaming else handler.unary_unary

    def message(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        with room.wait(context, method):
            return _first(requests, method, context)

    def answer(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        return behavior(message(requests, context), context)

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        yield from behavior(message(requests, context), context)

    return answers if handler.response_streaming else answer


def _watch(handler: grpc.RpcMethodHandler, method: str, room: WaitingRoom) -> Any:
    """The behavior of `handler` for a stream of answers, which holds its slot until it ends."""
    behavior: Any = handler.unary_stream

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with room.wait(context, method):
            yield from behavior(_first(requests, method, context), context)

    return answers


def _request_stream(handler: grpc.RpcMethodHandler, method: str, room: WaitingRoom) -> Any:
    """The behavior of `handler` for a stream of requests, which holds a slot; each restarts its clock."""
    behavior: Any = handler.stream_stream

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with room.wait(context, method) as slot:
            yield from _renewing(behavior(_renewing(requests, slot), context), slot)

    return answers


def _renewing(items: Iterator[Any], slot: Slot) -> Iterator[Any]:
    for item in items:
        slot.renew()
        yield item


def _first(requests: Iterator[Any], method: str, context: grpc.ServicerContext) -> Any:
    request = next(requests, None)
    if request is None:
        refuse(context, InvalidRequest(f"{method} takes one message, and the client sent none. Send one."))
    return request


def _handler(
    handler: grpc.RpcMethodHandler, behavior: Any, threads: ThreadPoolExecutor
) -> grpc.RpcMethodHandler:
    """`handler` with a behavior that takes a stream of requests, answered by `threads`."""
    behavior.experimental_thread_pool = threads
    streams = handler.response_streaming
    make = grpc.stream_stream_rpc_method_handler if streams else grpc.stream_unary_rpc_method_handler
    return make(behavior, handler.request_deserializer, handler.response_serializer)


def _threads(calls: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(calls + _SPARE_THREADS, thread_name_prefix=name)
