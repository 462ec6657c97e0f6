"""Random requests: each gets an answer that blames the caller, and the server survives."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from blender import BlenderClient, Source
from blender.catalog.blends import open_blends
from blender.loading.costs import Backbone
from blender.loading.service import LOADING, loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.server import BlenderServer
from blender.serving.service import CONFIGS, DATA, blend_services
from blender.spec.mesh import Mesh
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE

METHODS = [
    f"/{service.full_name}/{method.name}"
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
FAULTS = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE", "FAILED_PRECONDITION"}
QUICK = settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def server(shared_lake: Settings) -> Iterator[BlenderServer]:
    blends = open_blends(shared_lake)
    blend = blends.create([Source(CODE, 6, oversample=True), Source(PROSE, 2)], seed=8)
    model = Backbone(hidden=16, layers=2)
    spec = LoadingSpec(blend=blend.id, mesh=Mesh(dp=2), model=model, microbatches=2)
    loader = served_loader(blends.open(blend.id), spec)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as running:
        yield running
    loader.close()


@pytest.fixture(scope="module")
def channel(server: BlenderServer) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.address) as connected:
        yield connected


@pytest.fixture(scope="module")
def blend(server: BlenderServer) -> str:
    """The id of a blend that is there."""
    with BlenderClient(server.address) as client:
        return client.create([Source(CODE, 6, oversample=True), Source(PROSE, 2)], seed=7).id


def answered(channel: grpc.Channel, method: str, request: bytes) -> str:
    """The name of the status that a request of these bytes gets; a stream is left after two messages."""
    call = channel.unary_stream(method)(request, timeout=60)
    try:
        list(itertools.islice(call, 2))
    except grpc.RpcError as error:
        return str(error.code().name) if error.details() else "without a sentence"
    call.cancel()
    return "OK"


@pytest.mark.invariant("A malformed request gets its status and a sentence, and the server keeps running.")
@QUICK
@given(method=st.sampled_from(sorted(METHODS)), noise=st.binary(max_size=200))
@example(method=f"/{DATA}/Fetch", noise=b"\n\x01\xff")  # an id that is not UTF-8
@example(method=f"/{DATA}/Fetch", noise=b"\x0a\xff\xff\xff\xff\x0f")  # a field longer than the message
def test_any_bytes_are_answered(channel: grpc.Channel, method: str, noise: bytes) -> None:
    assert answered(channel, method, noise) in FAULTS


numbers = st.sampled_from(
    [0, 1, 2, 3, 7, 8, 149, 150, 151, 2**31, 2**41, 2**42 - 1, 2**42, 2**62, 2**63 - 1]
).flatmap(lambda at: st.sampled_from([at, -at])) | st.integers(-(2**63), 2**63 - 1)
small = st.sampled_from([0, 1, 2, 3, 4, 8, 9, -1, 2**31 - 1, -(2**31)])
texts = st.text(max_size=20)


@QUICK
@given(offset=numbers, steps=numbers, rank=small, ranks=small, stride=numbers, data=st.data())
def test_any_numbers_of_a_fetch_are_answered(
    channel: grpc.Channel, blend: str, offset: int, steps: int, rank: int, ranks: int, stride: int, data: Any
) -> None:
    known = data.draw(st.sampled_from([blend]) | texts)
    request = pb.FetchRequest(blend=known, offset=offset, steps=steps, rank=rank, ranks=ranks, stride=stride)
    assert answered(channel, f"/{DATA}/Fetch", request.SerializeToString()) in FAULTS
    explain = pb.ExplainRequest(blend=known, offset=offset)
    assert answered(channel, f"/{DATA}/Explain", explain.SerializeToString()) in FAULTS


@QUICK
@given(
    offset=numbers,
    steps=numbers,
    rank=small,
    stride=numbers,
    plan=st.none() | st.integers(0, 2**64 - 1),
    known=st.booleans() | texts,
)
def test_any_numbers_of_a_load_are_answered(
    channel: grpc.Channel,
    offset: int,
    steps: int,
    rank: int,
    stride: int,
    plan: int | None,
    known: bool | str,
) -> None:
    (answer,) = channel.unary_stream(f"/{LOADING}/Spec")(b"")
    spec = known if isinstance(known, str) else pb.SpecResponse.FromString(answer).spec
    request = pb.LoadRequest(spec=spec, offset=offset, steps=steps, rank=rank, stride=stride, last_plan=plan)
    assert answered(channel, f"/{LOADING}/Load", request.SerializeToString()) in FAULTS


@QUICK
@given(
    offset=numbers,
    row=numbers,
    bucket=st.lists(numbers, max_size=9),
    bin=st.lists(numbers, max_size=9),
    level=texts,
    node=st.none() | st.lists(numbers, max_size=9),
)
def test_any_plan_of_a_callers_own_is_answered(
    channel: grpc.Channel,
    offset: int,
    row: int,
    bucket: list[int],
    bin: list[int],
    level: str,
    node: list[int] | None,
) -> None:
    (answer,) = channel.unary_stream(f"/{LOADING}/Spec")(b"")
    spec = pb.SpecResponse.FromString(answer).spec
    summary = pb.SummaryRequest(spec=spec, offset=offset, row=row)
    assert answered(channel, f"/{LOADING}/Summary", summary.SerializeToString()) in FAULTS
    pictures = None if node is None else pb.PicturePlaces(node=node)
    plan = pb.PlanRequest(
        spec=spec, offset=offset, bucket=bucket, bin=bin, pictures=pictures, encoder_level=level
    )
    assert answered(channel, f"/{LOADING}/Plan", plan.SerializeToString()) in FAULTS


sources = st.builds(
    pb.Source,
    table=st.sampled_from(["packed.code", "packed.prose", "packed.none", "packed", "a.b.c", ""]) | texts,
    name=st.just("") | texts,
    weight=st.integers(0, 9) | numbers,
    oversample=st.booleans(),
    shuffle=st.sampled_from(["", "none", "page", "page_window", "row"]) | texts,
    columns=st.lists(
        st.sampled_from(["tokens", "segments", "ordinal", "n_tokens", "shard"]) | texts, max_size=3
    ),
    content=st.just("") | texts,
    page_rows=st.integers(0, 9) | numbers,
    window_pages=st.integers(0, 9) | numbers,
)
likely = st.builds(  # often a source that is taken, with a number that may be out of all proportion
    pb.Source,
    table=st.sampled_from(["packed.code", "packed.prose"]),
    name=st.sampled_from(["", "a", "b"]) | texts,
    weight=st.integers(0, 9) | st.sampled_from([2**20, 2**20 + 1]),
    oversample=st.booleans(),
    shuffle=st.sampled_from(["", "row"]),
    columns=st.lists(st.sampled_from(["tokens", "segments", "n_tokens"]), max_size=3, unique=True),
) | st.builds(
    pb.Source,
    table=st.just("packed.prose"),
    weight=st.integers(1, 9),
    oversample=st.booleans(),
    shuffle=st.just("page_window"),
    page_rows=st.integers(1, 9) | numbers,
    window_pages=st.integers(1, 9) | numbers,
)
schedules = st.none() | st.builds(
    pb.Schedule,
    kind=st.sampled_from(["constant", "stepped", "linear", "cosine"]) | texts,
    rows_per_step=st.integers(1, 9) | numbers,
    knots=st.lists(
        st.builds(
            pb.Knot,
            offset=st.integers(0, 9) | numbers,
            proportions=st.dictionaries(
                st.sampled_from(["packed.code", "packed.prose"]) | texts, st.floats() | st.integers(0, 9)
            ),
        ),
        max_size=3,
    ),
)
referred = st.one_of(
    sources,
    likely,
    likely,
    st.builds(lambda source, value: _with(source, "snapshot", value), sources, numbers),
    st.builds(lambda source, value: _with(source, "branch", value), sources, texts),
    st.builds(lambda source, value: _with(source, "tag", value), sources, texts),
)


def _with(source: Any, field: str, value: Any) -> Any:
    made = type(source)()
    made.CopyFrom(source)
    setattr(made, field, value)
    return made


@QUICK
@given(added=st.lists(referred, max_size=3), seed=st.integers(0, 2**64 - 1), schedule=schedules)
def test_any_definition_is_answered_and_one_that_is_taken_can_be_read(
    channel: grpc.Channel, added: list[Any], seed: int, schedule: Any
) -> None:
    request = pb.CreateRequest(sources=added, seed=seed, schedule=schedule)
    status = answered(channel, f"/{CONFIGS}/Create", request.SerializeToString())
    assert status in FAULTS
    if status == "OK":
        (answer,) = channel.unary_stream(f"/{CONFIGS}/Create")(request.SerializeToString())
        fetch = pb.FetchRequest(blend=pb.Blend.FromString(answer).id, steps=1)
        assert answered(channel, f"/{DATA}/Fetch", fetch.SerializeToString()) in {"OK", "OUT_OF_RANGE"}


@QUICK
@given(
    offset=st.integers(0, 9) | numbers,
    weights=st.dictionaries(
        st.sampled_from(["packed.code", "packed.prose"]) | texts, st.integers(0, 9) | numbers
    ),
    added=st.lists(referred, max_size=2),
)
def test_any_update_is_answered(
    channel: grpc.Channel, blend: str, offset: int, weights: dict[str, int], added: list[Any]
) -> None:
    request = pb.UpdateRequest(parent=blend, offset=offset, weights=weights, add=added)
    assert answered(channel, f"/{CONFIGS}/Update", request.SerializeToString()) in FAULTS


def test_the_server_still_serves_after_all_of_it(server: BlenderServer, blend: str) -> None:
    with BlenderClient(server.address) as client:
        assert [batch.offset for batch in client.fetch(blend, 147)] == [147, 148, 149]
