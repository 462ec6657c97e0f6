"""The statuses that docs/serving.md names are those that a running server sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest

from blender import Source
from blender.catalog.blends import Blends
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.calls import Limits
from blender.serving.request_bytes import MAX_REQUEST_BYTES
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.serving.transport import MAX_METADATA_BYTES
from blender.wire.stubs import stub
from factory.settings import Settings
from tests.blender.lakes import CODE, ROOT
from tests.blender.raw_http2 import END_HEADERS, HEADERS, RawConnection, frame, headers

PAGE = (ROOT / "docs" / "serving.md").read_text()
ROW = re.compile(r"^\| (?P<subject>[^|]+?) \| (?P<limit>[^|]+?) \| (?P<beyond>[^|]+?) \|$", re.MULTILINE)
STATUS = re.compile(rf"\b(?:{'|'.join(code.name for code in grpc.StatusCode)})\b")
LIMITS = {
    row["subject"]: set(STATUS.findall(row["beyond"]))
    for row in ROW.finditer(PAGE)
    if STATUS.search(row["beyond"])
}
GET = "/blender.v1.BlendConfigs/Get"

Calls = Iterator[Callable[[], object]]


_CONTINUATION = 9  # a frame of HTTP/2


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


@contextmanager
def channel_to(
    blends: Blends, compression: grpc.Compression | None = None, **options: Any
) -> Iterator[grpc.Channel]:
    """A channel to a server with `options`."""
    with (
        BlenderServer(blend_services(blends), **options) as server,
        grpc.insecure_channel(server.address, compression=compression) as channel,
    ):
        yield channel


def status_of(call: Callable[[], object]) -> object:
    """The status with which a call ends, or what it returns."""
    try:
        return call()
    except grpc.RpcError as error:
        return error.code().name


def large_requests(blends: Blends) -> Calls:
    with channel_to(blends) as channel:
        for n_bytes in (MAX_REQUEST_BYTES, MAX_REQUEST_BYTES + (1 << 20)):
            yield lambda size=n_bytes: stub(channel, "BlendConfigs").Get(pb.GetRequest(id="x" * size))


def compressed_requests(blends: Blends) -> Calls:
    with channel_to(blends, compression=grpc.Compression.Gzip) as channel:
        yield lambda: stub(channel, "BlendConfigs").Get(pb.GetRequest(id="x" * 1000))


def long_metadata(blends: Blends) -> Calls:
    metadata = {f"x{number}": "y" * 1000 for number in range(MAX_METADATA_BYTES // 1000 + 1)}
    with channel_to(blends) as channel:
        yield lambda: stub(channel, "BlendConfigs").Get(pb.GetRequest(), metadata=tuple(metadata.items()))
    with (
        BlenderServer(blend_services(blends)) as server,
        RawConnection(server.address, confirm=False) as unconfirmed,
    ):
        start, rest = (block := headers(GET, **metadata))[:16384], block[16384:]
        unconfirmed.socket.sendall(frame(HEADERS, 0, 1, start) + frame(_CONTINUATION, END_HEADERS, 1, rest))
        yield lambda: status_of_trailers(unconfirmed)


def calls_without_a_message(blends: Blends) -> Calls:
    with channel_to(blends, limits=Limits(message_s=0.1)) as channel:
        never = Event()
        yield channel.stream_unary(GET).future(iter(never.wait, True), timeout=60).result
        never.set()


def calls_at_once(blends: Blends, limits: Limits) -> Calls:
    with channel_to(blends, limits=limits) as channel:
        blend = blends.create([Source(CODE, 30_000, oversample=True)]).id
        reading = stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=blend))
        next(reading)
        yield lambda: stub(channel, "BlendConfigs").Get(pb.GetRequest(id=blend))
        reading.cancel()


def fetches_of_many_steps(blends: Blends) -> Calls:
    with channel_to(blends, limits=Limits(steps=3)) as channel:
        blend = blends.create([Source(CODE, 4)]).id
        yield lambda: list(stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=blend, steps=4)))


def explained_steps(blends: Blends) -> Calls:
    with channel_to(blends) as channel:
        blend = blends.create([Source(CODE, Limits().explained_rows + 1, oversample=True)]).id
        yield lambda: stub(channel, "BlendData").Explain(pb.ExplainRequest(blend=blend))


def waits_for_rows(blends: Blends) -> Calls:
    with channel_to(blends, limits=Limits(wait_s=0.2)) as channel:
        blend = blends.create([Source(CODE, 30, live=True)]).id
        yield lambda: list(stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=blend, steps=3)))


def status_of_trailers(connection: RawConnection) -> str:
    """The status of the first call that ends; HPACK has it as a literal, `grpc-status` and its number."""
    for kind, _, _, payload in connection.frames(20):
        _, status, value = payload.partition(b"grpc-status")
        if kind == HEADERS and status:
            number = int(value[1 : 1 + value[0]])
            return next(code.name for code in grpc.StatusCode if code.value[0] == number)
    raise AssertionError("no call ended")


BEYOND: dict[str, Callable[[Blends], Calls]] = {
    "a request": large_requests,
    "a compressed request": compressed_requests,
    "the metadata of a call": long_metadata,
    "the wait for the message of a call": calls_without_a_message,
    "calls at once, per process; a stream counts as one": lambda blends: calls_at_once(
        blends, Limits(calls=1)
    ),
    "calls at once per client: per token, else per certificate, else per address": lambda blends: (
        calls_at_once(blends, Limits(calls_per_client=1))
    ),
    "steps of a fetch": fetches_of_many_steps,
    "rows of an explained step": explained_steps,
    "the wait for rows, if the call has no deadline": waits_for_rows,
}


def test_every_limit_with_a_status_is_tried() -> None:
    assert LIMITS.keys() == BEYOND.keys()


@pytest.mark.invariant("A server sends the statuses that docs/serving.md names.")
@pytest.mark.parametrize("subject", BEYOND)
def test_beyond_a_limit_the_server_sends_the_statuses_of_the_page(blends: Blends, subject: str) -> None:
    assert {status_of(call) for call in BEYOND[subject](blends)} == LIMITS[subject]


def test_a_server_that_stops_and_one_that_asks_for_a_token_send_the_statuses_of_the_page(
    blends: Blends, tmp_path: Path
) -> None:
    assert "A stream that lasts longer ends with UNAVAILABLE" in PAGE
    blend = blends.create([Source(CODE, 30_000, oversample=True)]).id
    server = BlenderServer(blend_services(blends))
    server.start()
    with grpc.insecure_channel(server.address) as channel:
        reading = stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=blend))
        next(reading)
        server.stop(grace_s=0)
        assert status_of(lambda: list(reading)) == "UNAVAILABLE"
    assert "ends with the status UNAUTHENTICATED" in PAGE
    (tmp_path / "tokens").write_text("one\n")
    (tmp_path / "tokens").chmod(0o600)
    with channel_to(blends, security=ServerSecurity(tokens=tmp_path / "tokens")) as channel:
        assert status_of(lambda: stub(channel, "BlendConfigs").Get(pb.GetRequest())) == "UNAUTHENTICATED"
