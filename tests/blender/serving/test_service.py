"""The services over a real port: the core's rows and errors, for our client and for any other."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from blender import BlenderClient, Source
from blender.catalog.blends import Blends
from blender.errors import (
    BlenderFailure,
    BlenderUnavailable,
    BlendNotFound,
    Busy,
    EndOfData,
    InvalidBlend,
    InvalidRequest,
)
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.calls import Limits
from blender.serving.server import BlenderServer
from blender.serving.service import CONFIGS, DATA, blend_services
from blender.spec.step_range import StepRange
from blender.wire.status import to_error
from blender.wire.stubs import stub
from factory.errors import ConfigurationError, FactoryError, MachineError, TableNotFound
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE

SOURCES = [Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)]


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def test_a_blend_is_the_same_through_the_client_as_through_the_core(
    client: BlenderClient, blends: Blends
) -> None:
    blend = client.create(SOURCES, seed=7)
    core = blends.open(blend.id)
    fetched = list(client.fetch(blend.id, 3, steps=20))
    assert [batch.offset for batch in fetched] == list(range(3, 23))
    for batch in fetched:
        assert batch.arrow.equals(core.step(batch.offset), check_metadata=True)
        assert batch.next_offset == batch.offset + 1
    assert [(s.table, s.weight, s.shuffle, s.oversample) for s in blend.sources] == [
        (CODE, 6, "row", True),
        (PROSE, 2, "none", False),
    ]
    assert [s.snapshot for s in blend.sources] == list(blends.get(blend.id).pins.snapshots)


def test_steps_larger_than_a_block_arrive_whole(client: BlenderClient, blends: Blends) -> None:
    blend = client.create([Source(CODE, 30_000, oversample=True), Source(PROSE, 10_000, oversample=True)])
    assert len(list(blends.open(blend.id).fetch(StepRange(0, 1)))) > 1
    batches = list(client.fetch(blend.id, 0, steps=2))
    assert [(batch.offset, len(batch)) for batch in batches] == [(0, 40_000), (1, 40_000)]
    assert batches[1].arrow.equals(blends.open(blend.id).step(1))


def test_the_life_of_a_blend(client: BlenderClient) -> None:
    blend = client.create(SOURCES, seed=70)  # of no other test, because it is retired
    child = client.update(blend.id, 10, {CODE: 2}, [Source(CODE, 4, name="again", shuffle="row")])
    assert (child.parent, child.offset) == (blend.id, 10)
    assert client.get(child.id) == child
    listed = [stored_blend.id for stored_blend in client.list()]
    assert listed.index(blend.id) < listed.index(child.id)
    described = client.describe(child.id)
    assert [(piece.offset, piece.weights) for piece in described.pieces] == [(0, (6, 2, 0)), (10, (2, 2, 4))]
    assert [source.steps for source in described.sources] == [None, 150, 20]
    assert described.steps == 20
    assert client.describe(client.create(SOURCES[:1]).id).steps is None
    assert client.retire(blend.id).retired
    assert blend.id not in [stored_blend.id for stored_blend in client.list()]


UNKNOWN = "0" * 32
BLEND = "the blend"


CODES = {
    BlendNotFound: "NOT_FOUND",
    InvalidBlend: "INVALID_ARGUMENT",
    InvalidRequest: "INVALID_ARGUMENT",
    ConfigurationError: "INVALID_ARGUMENT",
    TableNotFound: "FAILED_PRECONDITION",
    EndOfData: "OUT_OF_RANGE",
}


def create(**source: object) -> pb.CreateRequest:
    return pb.CreateRequest(sources=[pb.Source(**source)])


@pytest.mark.invariant("A malformed request gets its status and a sentence, and the server keeps running.")
@pytest.mark.parametrize(
    "request_, kind, sentence",
    [
        (pb.GetRequest(id=UNKNOWN), BlendNotFound, "no blend 0000"),
        (pb.RetireRequest(), BlendNotFound, "Malformed blend id"),
        (pb.CreateRequest(), InvalidBlend, "sum to 0 rows"),
        (create(table=CODE, weight=-3), InvalidBlend, "`weight` is -3"),
        (create(weight=1), ConfigurationError, "is not a table"),
        (create(table="packed.none", weight=1), TableNotFound, "no table `packed.none`"),
        (create(table=CODE, weight=1, shuffle="pages"), InvalidBlend, "`shuffle` is 'pages'"),
        (pb.UpdateRequest(parent=UNKNOWN), BlendNotFound, "no blend"),
        (pb.UpdateRequest(parent=BLEND, offset=-1), InvalidBlend, "`offset` is -1"),
        (pb.FetchRequest(blend=UNKNOWN), BlendNotFound, "no blend"),
        (pb.FetchRequest(blend=BLEND, offset=-1), InvalidRequest, "Steps -1"),
        (pb.FetchRequest(blend=BLEND, steps=-1), InvalidRequest, "to -1"),
        (pb.FetchRequest(blend=BLEND, rank=3, ranks=2), InvalidRequest, "Rank 3 of 2"),
        (pb.FetchRequest(blend=BLEND, ranks=-2), InvalidRequest, "Rank 0 of -2"),
        (pb.FetchRequest(blend=BLEND, ranks=3), InvalidRequest, "3 ranks"),
        (pb.FetchRequest(blend=BLEND, offset=150, steps=1), EndOfData, "150 steps"),
        (pb.ExplainRequest(blend=BLEND, offset=150), EndOfData, "150 steps"),
        (pb.DescribeRequest(blend="../x"), BlendNotFound, "Malformed blend id"),
    ],
)
def test_a_malformed_request_gets_its_status_and_the_server_lives_on(
    client: BlenderClient, server: BlenderServer, request_: Any, kind: type[FactoryError], sentence: str
) -> None:
    blend = client.create(SOURCES, seed=7)
    for field in ("blend", "parent"):
        if getattr(request_, field, "") == BLEND:
            request_ = type(request_).FromString(request_.SerializeToString())
            setattr(request_, field, blend.id)
    method = type(request_).__name__.removesuffix("Request")
    service = "BlendData" if method in ("Fetch", "Describe", "Explain") else "BlendConfigs"
    with grpc.insecure_channel(server.address) as channel:
        call = getattr(stub(channel, service), method)
        with pytest.raises(grpc.RpcError) as raised:
            list(call(request_)) if method == "Fetch" else call(request_)
    assert raised.value.code().name == CODES[kind]
    assert sentence in raised.value.details()
    assert type(to_error(raised.value, server.address)) is kind
    assert len(next(client.fetch(blend.id, 0, steps=1))) == 8


def test_malformed_bytes_are_refused_and_the_server_lives_on(
    client: BlenderClient, server: BlenderServer
) -> None:
    blend = client.create(SOURCES)
    with grpc.insecure_channel(server.address) as channel:
        for service, method in ((DATA, "Fetch"), (DATA, "Explain"), (CONFIGS, "Create")):
            with pytest.raises(grpc.RpcError) as raised:
                list(channel.unary_stream(f"/{service}/{method}")(b"\xff\x01 noise"))
            assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert f"The 8 bytes are not a valid {method}Request" in raised.value.details()
    assert client.get(blend.id) == blend


def test_an_unforeseen_failure_is_logged_whole_and_answered_with_its_id(
    client: BlenderClient, blends: Blends, caplog: pytest.LogCaptureFixture
) -> None:
    blend = client.create(SOURCES)
    del blends._blends  # the server's own fault
    with caplog.at_level(logging.ERROR, "blender"), pytest.raises(BlenderFailure, match="incident") as raised:
        client.describe(blend.id)
    incident = str(raised.value).split("incident ")[1].rstrip(".")
    assert incident in caplog.text
    assert "AttributeError" in caplog.text
    assert "AttributeError" not in str(raised.value)


def test_64_clients_at_once_get_the_same_rows(server: BlenderServer, blends: Blends) -> None:
    with BlenderClient(server.address) as one:
        blend = one.create(SOURCES, seed=7)
    expected = [blends.open(blend.id).step(offset) for offset in range(150)]
    together = threading.Barrier(64)

    def read(number: int) -> bool:
        with BlenderClient(server.address) as mine:
            together.wait()
            got = [batch.arrow for batch in mine.fetch(blend.id, number, steps=80)]
        return got == expected[number : number + 80]

    with ThreadPoolExecutor(64) as pool:
        assert list(pool.map(read, range(64))) == [True] * 64


def test_a_reader_that_stops_early_leaves_no_thread_busy(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=2)) as server,
        BlenderClient(server.address, patience_s=60) as client,
    ):
        blend = client.create([Source(CODE, 1000, oversample=True)])
        for _ in range(6):  # endless streams, more than there are threads
            stream = client.fetch(blend.id)
            next(stream)
            stream.close()
        assert client.get(blend.id) == blend


def test_a_server_whose_slots_are_taken_is_well_and_says_that_it_is_busy(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=2)) as server,
        BlenderClient(server.address) as client,
        BlenderClient(server.address, patience_s=0) as other,
        grpc.insecure_channel(server.address) as channel,
    ):
        blend = client.create([Source(CODE, 1000, oversample=True)])
        streams = [client.fetch(blend.id) for _ in range(2)]
        for stream in streams:
            next(stream)
        for _ in range(3):
            with pytest.raises(Busy, match=r"already answers 2 calls\. Retry, ask another"):
                other.get(blend.id)
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=20)
            assert health.status == health_pb2.HealthCheckResponse.SERVING
        streams.pop().close()
        assert client.get(blend.id) == blend  # asked again until a slot is free
        streams.pop().close()


def test_health_and_reflection_answer(server: BlenderServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for name in ("", CONFIGS, DATA):
            answer = health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        assert {CONFIGS, DATA} <= set(ProtoReflectionDescriptorDatabase(channel).get_services())


def test_a_host_others_can_reach_is_refused_unless_allowed(blends: Blends) -> None:
    with pytest.raises(ConfigurationError, match="allow-remote"):
        BlenderServer(blend_services(blends), host="0.0.0.0")
    with BlenderServer(blend_services(blends), host="0.0.0.0", allow_remote=True) as server:
        assert server.address.startswith("0.0.0.0:")


def test_a_port_in_use_is_refused(server: BlenderServer, blends: Blends) -> None:
    with pytest.raises(MachineError, match="already in use"):
        BlenderServer(blend_services(blends), port=int(server.address.rsplit(":", 1)[1]))


def test_a_blender_that_is_not_there_is_named_after_patience(blends: Blends) -> None:
    with BlenderServer(blend_services(blends)) as server:
        address = server.address
    with BlenderClient(address, patience_s=0.2) as client, pytest.raises(BlenderUnavailable, match=address):
        client.list()


def test_an_error_that_quotes_a_long_request_still_arrives(client: BlenderClient) -> None:
    with pytest.raises(BlendNotFound, match="Malformed blend id"):  # gRPC drops details above some 16 KB
        client.get("x" * 100_000)
