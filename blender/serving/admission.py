"""The way of a call from its headers to its message, on which a client can hold little.

gRPC hands a call over at its headers. Its own handlers of one request then wait for the message in a thread,
for ever. Ours are handlers of streams on the wire's terms, which look the same to a client: they begin at
the headers, wait for the message in a `Room`, and go on as what they are.

    kind                          threads                   places of those that wait
    the services of blends        for every call at once    MESSAGE_PLACES, for the message
    health                        of its own                HEALTH_PLACES, for the message
    a watch of health             of its own                WATCH_PLACES, as long as it lasts
    reflection                    of its own                REFLECTION_PLACES, as long as a stream lasts

So a flood of one kind takes nothing from the others. What is refused at its headers, as a call without the
token that a server asks for is (`blender.serving.security`), needs no message and takes no place.
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
from blender.serving.rooms import Place, Room
from blender.serving.transport import MAX_METADATA_BYTES

MESSAGE_PLACES = 64
HEALTH_PLACES, REFLECTION_PLACES = 16, 8
WATCH_PLACES = 64  # clients whose channels check health watch as long as they are connected

_SPARE_THREADS = 8  # to refuse calls, and for waits that have lost their place and do not know it yet

Continuation = Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None]


class Admission(grpc.ServerInterceptor):
    """Gives each method its threads and its room, those of blends threads for `calls` at once."""

    def __init__(self, calls: int, message_s: float, client_of: ClientOf) -> None:
        self.threads = _threads(calls + MESSAGE_PLACES, "blender")
        """Those that answer calls of blends."""
        self._health = _threads(HEALTH_PLACES, "blender-health")
        self._watches = _threads(WATCH_PLACES, "blender-watches")
        self._reflection = _threads(REFLECTION_PLACES, "blender-reflection")
        self._message_room = Room(MESSAGE_PLACES, message_s, client_of)
        self._health_room = Room(HEALTH_PLACES, message_s)
        self._watch_room = Room(WATCH_PLACES)
        self._reflection_room = Room(REFLECTION_PLACES, message_s)
        self._admitted: dict[str, grpc.RpcMethodHandler] = {}
        self._too_large = refusal(
            InvalidRequest(f"The metadata of a call is at most {MAX_METADATA_BYTES:,} bytes. Send less.")
        )

    def __len__(self) -> int:
        """Calls that wait for their messages."""
        return len(self._message_room)

    def sweep(self) -> None:
        """End the waits that last too long."""
        for room in (self._message_room, self._health_room, self._reflection_room):
            room.sweep()

    def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        """The handler of a call that waits in a room; one of a method there is not is refused by gRPC."""
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
            return _streaming(handler, method, self._reflection_room, self._reflection)
        if service != health.SERVICE_NAME:
            return _waiting(handler, method, self._message_room, self.threads)
        if handler.response_streaming:
            return _lasting(handler, method, self._watch_room, self._watches)
        return _waiting(handler, method, self._health_room, self._health)


def _waiting(
    handler: grpc.RpcMethodHandler, method: str, room: Room, threads: ThreadPoolExecutor
) -> grpc.RpcMethodHandler:
    """The handler of a method of one request, which waits for it in `room`."""
    behavior: Any = handler.unary_stream if handler.response_streaming else handler.unary_unary

    def message(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        with room.wait(context, method):
            return _first(requests, method, context)

    def answer(requests: Iterator[Any], context: grpc.ServicerContext) -> Any:
        return behavior(message(requests, context), context)

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        yield from behavior(message(requests, context), context)

    if handler.response_streaming:
        return _handler(grpc.stream_stream_rpc_method_handler, answers, handler, threads)
    return _handler(grpc.stream_unary_rpc_method_handler, answer, handler, threads)


def _lasting(
    handler: grpc.RpcMethodHandler, method: str, room: Room, threads: ThreadPoolExecutor
) -> grpc.RpcMethodHandler:
    """The handler of a stream of answers that holds its place until it ends."""
    behavior: Any = handler.unary_stream

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with room.wait(context, method):
            yield from behavior(_first(requests, method, context), context)

    return _handler(grpc.stream_stream_rpc_method_handler, answers, handler, threads)


def _streaming(
    handler: grpc.RpcMethodHandler, method: str, room: Room, threads: ThreadPoolExecutor
) -> grpc.RpcMethodHandler:
    """The handler of a stream of requests that holds a place; its time begins again with each message."""
    behavior: Any = handler.stream_stream

    def answers(requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        with room.wait(context, method) as place:
            yield from _kept(behavior(_kept(requests, place), context), place)

    return _handler(grpc.stream_stream_rpc_method_handler, answers, handler, threads)


def _kept(items: Iterator[Any], place: Place) -> Iterator[Any]:
    for item in items:
        place.keep()
        yield item


def _first(requests: Iterator[Any], method: str, context: grpc.ServicerContext) -> Any:
    request = next(requests, None)
    if request is None:
        refuse(context, InvalidRequest(f"{method} takes one message, and none was sent. Send one."))
    return request


def _handler(
    make: Callable[..., grpc.RpcMethodHandler],
    behavior: Any,
    handler: grpc.RpcMethodHandler,
    threads: ThreadPoolExecutor,
) -> grpc.RpcMethodHandler:
    behavior.experimental_thread_pool = threads
    return make(behavior, handler.request_deserializer, handler.response_serializer)


def _threads(calls: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(calls + _SPARE_THREADS, thread_name_prefix=name)
