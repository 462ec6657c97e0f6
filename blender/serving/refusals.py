"""The end of an unanswered call: a status, a sentence, the class of the error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc

from blender.serving.access_log import RefusedCalls
from blender.wire.status import ERROR_KEY, to_status
from factory.errors import FactoryError


def refuse(context: grpc.ServicerContext, error: FactoryError) -> NoReturn:
    """End a call with the error's status, class and sentence."""
    code, name = to_status(error)
    end_call(context, code, str(error), name)


def refusal(error: FactoryError) -> grpc.RpcMethodHandler:
    """A handler that refuses a call at its headers: as a handler of streams it waits for no message.

    It has its own thread, so that a flood of refused calls occupies no thread that answers.
    """

    refused_calls = RefusedCalls(to_status(error)[0].name, str(error))

    def refused(requests: Any, context: grpc.ServicerContext) -> NoReturn:  # noqa: ARG001
        refused_calls.add(context)
        refuse(context, error)

    behavior: Any = refused
    behavior.experimental_thread_pool = ThreadPoolExecutor(1, thread_name_prefix="blender-refusals")
    return grpc.stream_unary_rpc_method_handler(behavior)


def end_call(context: grpc.ServicerContext, code: grpc.StatusCode, sentence: str, name: str = "") -> NoReturn:
    """End a call with a status and a sentence; `name` is the class of the error, if any."""
    context.set_trailing_metadata(((ERROR_KEY, name),))
    context.abort(code, sentence)
    raise AssertionError("abort returned")
