"""A server of a service that is not Blender's: it needs its token, has health, and ends its streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blender.serving.calls import CallLimiter, Limits
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer, Service
from blender.serving.service import DATA, answering

NAME, TOKEN = "test.Echo", (("authorization", "Bearer first-token"),)


def echo_handlers(calls: CallLimiter) -> grpc.GenericRpcHandler:
    def echo(request: bytes, context: grpc.ServicerContext) -> bytes:
        with answering("Echo", context, calls):
            return request

    def repeat(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        with answering("Repeat", context, calls) as call:
            while True:
                yield request
                call.wait(60, lambda: "Nothing to repeat.")

    methods = {
        "Echo": grpc.unary_unary_rpc_method_handler(echo),
        "Repeat": grpc.unary_stream_rpc_method_handler(repeat),
    }
    return grpc.method_handlers_generic_handler(NAME, methods)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BlenderServer]:
    tokens = tmp_path / "tokens"
    tokens.write_text("first-token\n")
    tokens.chmod(0o600)
    services = [Service(NAME, echo_handlers)]
    with BlenderServer(services, limits=Limits(calls=1), security=ServerSecurity(tokens=tokens)) as server:
        yield server


@pytest.mark.invariant(
    "A server answers the services it is given with the same tokens, limits, health and end of streams."
)
def test_a_server_answers_the_services_it_is_given_and_no_other(server: BlenderServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        echo = channel.unary_unary(f"/{NAME}/Echo")
        assert echo(b"rows", metadata=TOKEN, timeout=20) == b"rows"
        with pytest.raises(grpc.RpcError) as refused:
            echo(b"rows", timeout=20)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as unknown:
            channel.unary_unary(f"/{DATA}/Describe")(b"", metadata=TOKEN, timeout=20)
        assert unknown.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_health_knows_the_services_of_the_server(server: BlenderServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        answer = check(health_pb2.HealthCheckRequest(service=NAME), timeout=20)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as unknown:
            check(health_pb2.HealthCheckRequest(service=DATA), timeout=20)
        assert unknown.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.invariant(
    "A server answers the services it is given with the same tokens, limits, health and end of streams."
)
def test_a_stopping_server_ends_the_streams_of_any_service(server: BlenderServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        stream = channel.unary_stream(f"/{NAME}/Repeat")(b"rows", metadata=TOKEN, timeout=60)
        assert next(stream) == b"rows"
        stopping = threading.Thread(target=server.stop, args=(0.1,))
        stopping.start()
        with pytest.raises(grpc.RpcError) as ended:
            next(stream)
        stopping.join()
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert "This Blender is stopping" in ended.value.details()
