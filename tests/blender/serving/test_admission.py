"""Clients that open calls and then do nothing, next to clients that work."""

from __future__ import annotations

import gzip
import resource
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from blender import BlenderClient, Source
from blender.catalog.blends import Blends
from blender.errors import BlenderUnavailable, Busy
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving import transport
from blender.serving.admission import MESSAGE_SLOTS
from blender.serving.calls import Limits
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.serving.waiting_room import WAITS_ENDED
from blender.wire.status import is_transient, to_error
from blender.wire.stubs import stub
from factory.settings import Settings
from tests.blender.lakes import CODE, make_lake, serving
from tests.blender.programs import eventually
from tests.blender.raw_http2 import RawConnection, frame, headers, message

SOURCES = [Source(CODE, 6, oversample=True)]
FETCH, GET = "/blender.v1.BlendData/Fetch", "/blender.v1.BlendConfigs/Get"
CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

NO_WINDOW = struct.pack("!HI", 4, 0)  # a setting: answers have no room until the client gives some


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def health_of(channel: grpc.Channel) -> health_pb2.HealthCheckResponse:
    """The answer to a health check."""
    return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)


def accepts(address: str) -> bool:
    """Whether a server takes another connection."""
    try:
        with RawConnection(address):
            return True
    except ConnectionError:
        return False


@contextmanager
def half_open(address: str, method: str, calls: int = 1000, **metadata: str) -> Iterator[list[RawConnection]]:
    """So many calls that have sent headers and no message, 100 on each connection."""
    with ExitStack() as stack:
        connections = [stack.enter_context(RawConnection(address)) for _ in range(calls // 100)]
        for connection in connections:
            for _ in range(100):
                connection.call(method, **metadata)
        yield connections


@pytest.mark.invariant(
    "Clients that open calls without sending or reading anything block no other client and no health "
    "check, and the server reclaims their memory."
)
@pytest.mark.parametrize("method", [FETCH, GET, CHECK, WATCH, REFLECTION])
def test_a_thousand_half_open_calls_take_nothing_from_a_client_that_works(
    blends: Blends, method: str
) -> None:
    before = set(threading.enumerate())
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=4)) as server,
        BlenderClient(server.address, patience_s=0) as client,
        grpc.insecure_channel(server.address) as channel,
    ):
        blend = client.create(SOURCES)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with half_open(server.address, method):
            for _ in range(10):
                assert client.get(blend.id) == blend
                assert len(list(client.fetch(blend.id, steps=3))) == 3
                assert health_of(channel).status == health_pb2.HealthCheckResponse.SERVING
            assert len(server.admission) <= MESSAGE_SLOTS
            assert len(set(threading.enumerate()) - before) < 200
        assert eventually(lambda: len(server.admission) == len(server.calls) == 0)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 500 << 10  # KiB
        assert client.get(blend.id) == blend


def test_a_call_whose_message_does_not_come_is_ended(blends: Blends) -> None:
    impatient = BlenderServer(blend_services(blends), limits=Limits(message_s=0.1))
    with impatient as server, grpc.insecure_channel(server.address) as channel:
        never = threading.Event()
        call = channel.stream_unary(GET).future(iter(never.wait, True), timeout=60)
        error = call.exception()
        never.set()
        assert error.code() is grpc.StatusCode.CANCELLED
        assert is_transient(error)
        assert type(to_error(error, server.address)) is BlenderUnavailable
        assert len(server.admission) == 0


def test_a_call_that_ends_without_a_message_is_refused(blends: Blends) -> None:
    with BlenderServer(blend_services(blends)) as server, grpc.insecure_channel(server.address) as channel:
        error = channel.stream_unary(GET).future(iter(()), timeout=60).exception()
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error.details() == "Get takes one message, and the client sent none. Send one."


@pytest.mark.invariant(
    "The server refuses forbidden input before it holds it in memory: calls without a token at their "
    "headers, compressed messages always."
)
def test_without_a_token_a_call_is_refused_at_its_headers(blends: Blends, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("one\n")
    (tmp_path / "tokens").chmod(0o600)
    with (
        BlenderServer(blend_services(blends), security=ServerSecurity(tokens=tmp_path / "tokens")) as server,
        RawConnection(server.address) as attacker,
    ):
        for metadata in ({}, {"authorization": "Bearer two"}):
            streams = {attacker.call(method, **metadata) for method in (FETCH, GET, REFLECTION)}
            assert attacker.ended(20, lambda found, all=streams: found >= all) >= streams
        assert len(server.admission) == 0


@pytest.mark.invariant(
    "Clients that open calls without sending or reading anything block no other client and no health "
    "check, and the server reclaims their memory."
)
def test_a_stream_that_nobody_reads_gives_way_where_there_is_no_room(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=2, unread_s=600)) as server,
        BlenderClient(server.address, patience_s=0) as hurried,
        BlenderClient(server.address, patience_s=60) as patient,
        RawConnection(server.address, NO_WINDOW) as attacker,
    ):
        blend = patient.create(SOURCES)
        request = message(pb.FetchRequest(blend=blend.id).SerializeToString())
        assert eventually(lambda: len(server.calls) == 0)
        streams = [attacker.call(FETCH) for _ in range(2)]
        for stream in streams:
            attacker.send(stream, request, end=True)
        assert eventually(lambda: len(server.calls) == 2)
        with pytest.raises(Busy, match="already answers 2 calls"):
            hurried.get(blend.id)
        server.calls.limits = Limits(calls=2, unread_s=0)
        assert patient.get(blend.id) == blend
        assert len(attacker.ended(20, lambda found: len(found) == 1)) == 1
        assert eventually(lambda: len(server.calls) == 1)


def test_a_reader_that_gave_way_goes_on_where_it_was(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=1, unread_s=0.3)) as server,
        BlenderClient(server.address, prefetch_bytes=1, patience_s=60) as slow,
        BlenderClient(server.address, patience_s=60) as other,
    ):
        blend = slow.create([Source(CODE, 30_000, oversample=True)])
        reading = slow.fetch(blend.id, steps=20)
        offsets = [next(reading).offset]
        assert other.get(blend.id) == blend
        assert WAITS_ENDED.sums()["calls", "Fetch"] > 0
        offsets += [batch.offset for batch in reading]
        assert offsets == list(range(20))


def test_a_watch_that_takes_nothing_stops_no_health_check(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends)) as server,
        RawConnection(server.address, NO_WINDOW) as attacker,
        grpc.insecure_channel(server.address) as channel,
    ):
        attacker.send(attacker.call(WATCH), message(b""), end=True)
        for _ in range(5):
            assert health_of(channel).status == health_pb2.HealthCheckResponse.SERVING
            time.sleep(0.02)


def test_a_health_watch_sees_the_server_end_and_does_not_delay_it(blends: Blends) -> None:
    server = BlenderServer(blend_services(blends))
    server.start()
    with grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        unknown = health.Watch(health_pb2.HealthCheckRequest(service="none"), timeout=60)
        assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch = health.Watch(health_pb2.HealthCheckRequest(service="blender.v1.BlendData"), timeout=60)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        with pytest.raises(grpc.RpcError) as raised:
            health.Check(health_pb2.HealthCheckRequest(service="none"), timeout=60)
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
        began = time.monotonic()
        server.stop(grace_s=60)
        assert time.monotonic() - began < 30
        assert [one.status for one in watch] == [health_pb2.HealthCheckResponse.NOT_SERVING]


@pytest.mark.invariant(
    "The server refuses forbidden input before it holds it in memory: calls without a token at their "
    "headers, compressed messages always."
)
def test_compressed_messages_are_refused_and_never_inflated(blends: Blends) -> None:
    bomb = message(gzip.compress(bytes(60 << 20)), compressed=True)
    with BlenderServer(blend_services(blends)) as server:
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            with RawConnection(server.address) as attacker:
                stream = attacker.call(GET, grpc_encoding="gzip")
                attacker.send(stream, bomb, end=True)
                assert attacker.ended(20, bool) == {stream}
        # In KiB; an inflated message has 60 MiB, and other threads take some at any time.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 50 << 10
        with grpc.insecure_channel(server.address, compression=grpc.Compression.Gzip) as channel:
            with pytest.raises(grpc.RpcError) as raised:
                stub(channel, "BlendConfigs").Get(pb.GetRequest(id="x" * 1000), timeout=20)
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert raised.value.details() == "Compression algorithm 'gzip' is disabled."


def test_connections_are_fewer_than_the_files_a_process_may_open(
    blends: Blends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_CONNECTIONS", 8)
    with BlenderServer(blend_services(blends)) as server, grpc.insecure_channel(server.address) as channel:
        assert health_of(channel).status == health_pb2.HealthCheckResponse.SERVING
        with ExitStack() as stack:
            for _ in range(7):
                stack.enter_context(RawConnection(server.address))
            with pytest.raises(ConnectionError):
                RawConnection(server.address)
            assert health_of(channel).status == health_pb2.HealthCheckResponse.SERVING
        assert eventually(lambda: accepts(server.address))


@pytest.mark.parametrize("confirm", [True, False])  # gRPC limits metadata once its settings are confirmed
def test_a_call_with_huge_metadata_is_refused_at_its_headers(blends: Blends, confirm: bool) -> None:
    with (
        BlenderServer(blend_services(blends)) as server,
        RawConnection(server.address, confirm=confirm) as attacker,
    ):
        block = headers(GET, **{f"x{number}": "y" * 1000 for number in range(100)})
        pieces = [block[start : start + 16384] for start in range(0, len(block), 16384)]
        for number, piece in enumerate(pieces):
            last = 0x4 if piece is pieces[-1] else 0
            attacker.socket.sendall(frame(9 if number else 1, last, 1, piece))
        assert attacker.ended(20, bool) == {1}
        assert len(server.admission) == 0


@pytest.mark.invariant(
    "Clients that open calls without sending or reading anything block no other client and no health "
    "check, and the server reclaims their memory."
)
@pytest.mark.process
def test_the_memory_of_streams_that_nobody_reads_comes_back(tmp_path: Path) -> None:
    make_lake(tmp_path, code=40)
    with (
        serving(tmp_path) as server,
        BlenderClient(server.address) as client,
        RawConnection(server.address, NO_WINDOW) as working,
    ):
        process = psutil.Process(server.process.pid)
        wide = client.create([Source(CODE, 30_000, oversample=True)])  # a step is more than a block
        request = message(pb.FetchRequest(blend=wide.id).SerializeToString())
        working.send(working.call(FETCH), request, end=True)  # the server is not idle afterwards
        assert len(list(client.fetch(wide.id, steps=3))) == 3  # it has what it needs for itself
        before = process.memory_info().rss
        with RawConnection(server.address, NO_WINDOW) as attacker:
            for _ in range(120):
                attacker.send(attacker.call(FETCH), request, end=True)
            assert eventually(lambda: process.memory_info().rss - before > 240 << 20)
            time.sleep(1)
            taken = process.memory_info().rss - before
        # 2 % stay; with Arrow's own pool, or with a second arena of malloc, 6 to 12 %.
        assert eventually(lambda: process.memory_info().rss - before < 0.05 * taken, within_s=20)
