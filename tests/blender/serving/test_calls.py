"""The limits of a server, over a real port."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from blender.call_context import CallContext
from blender.catalog.blends import Blends
from blender.errors import BlendNotFound, Busy, InvalidRequest, ServerStopping, Stalled
from blender.opened.blend import Blend, StepBlock
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import Source
from blender.serving.calls import Limits
from blender.serving.request_bytes import MAX_REQUEST_BYTES
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.trainer.client import BlenderClient
from blender.wire.status import to_error
from blender.wire.stubs import stub
from factory.settings import Settings
from tests.blender.lakes import CODE
from tests.blender.programs import eventually

ENDLESS = [Source(CODE, 1000, oversample=True)]


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def refused(call: Iterator[object]) -> grpc.RpcError:
    """The error that ends a call."""
    with pytest.raises(grpc.RpcError) as raised:
        list(call)
    return raised.value


def test_a_client_with_all_its_calls_under_way_is_busy_and_others_are_not(
    blends: Blends, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("one\ntwo\n")
    (tmp_path / "tokens").chmod(0o600)
    security = ServerSecurity(tokens=tmp_path / "tokens")
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls_per_client=2), security=security) as server,
        BlenderClient(server.address, token="one") as one,
        BlenderClient(server.address, token="one", patience_s=0) as again,
        BlenderClient(server.address, token="two", patience_s=0) as two,
    ):
        blend = one.create(ENDLESS)  # the server may count it a moment longer than its answer takes
        streams = [one.fetch(blend.id) for _ in range(2)]
        for stream in streams:
            next(stream)
        with pytest.raises(Busy, match=r"already answers 2 calls of this client\. End one"):
            again.get(blend.id)
        assert two.get(blend.id) == blend
        streams.pop().close()
        streams.pop().close()


def test_a_token_that_nobody_asks_for_makes_no_client_another(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls_per_client=1)) as server,
        BlenderClient(server.address, token="one", patience_s=60) as one,
        BlenderClient(server.address, token="two", patience_s=0) as two,
    ):
        reading = one.fetch(one.create(ENDLESS).id)
        next(reading)
        with pytest.raises(Busy, match="already answers 1 calls of this client"):
            two.list()
        reading.close()


@pytest.mark.parametrize(
    "steps, sentence", [(4, "asks for 4 steps"), (0, "asks for all steps up to the end")]
)
def test_a_fetch_of_too_many_steps_names_the_limit(blends: Blends, steps: int, sentence: str) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(steps=3)) as server,
        grpc.insecure_channel(server.address) as channel,
        BlenderClient(server.address) as client,
    ):
        blend = client.create(ENDLESS)
        assert len(list(client.fetch(blend.id, steps=3))) == 3
        error = refused(stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=blend.id, steps=steps)))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert sentence in error.details()
        assert "at most 3 per call" in error.details()
        assert type(to_error(error, server.address)) is InvalidRequest


def test_a_step_too_large_to_explain_in_one_answer_is_refused(blends: Blends) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(explained_rows=999)) as server,
        BlenderClient(server.address) as client,
    ):
        sentence = "Step 7 has 1,000 rows, and one answer explains at most 999"
        with pytest.raises(InvalidRequest, match=sentence):
            client.explain(client.create(ENDLESS).id, 7)
        assert len(client.explain(client.create([Source(CODE, 999, oversample=True)]).id, 7)) == 999


def test_a_request_larger_than_what_is_read_is_refused(blends: Blends) -> None:
    with BlenderServer(blend_services(blends)) as server, grpc.insecure_channel(server.address) as channel:
        request = pb.GetRequest(id="x" * MAX_REQUEST_BYTES)
        error = refused(map(stub(channel, "BlendConfigs").Get, [request]))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "Blender reads at most 4,194,304" in error.details()
    with (
        BlenderServer(blend_services(blends)) as server,
        BlenderClient(server.address, patience_s=600) as client,
        pytest.raises(InvalidRequest, match=r"too large for Blender .* larger than max .* Send less"),
    ):
        client.get("x" * (MAX_REQUEST_BYTES + (1 << 20)))  # at once: it will never be taken


def test_metadata_is_read_up_to_its_limit_and_refused_beyond_it(blends: Blends) -> None:
    with BlenderServer(blend_services(blends)) as server:
        with BlenderClient(server.address, token="x" * 15_000, patience_s=0) as client:
            for _ in range(20):  # by default gRPC refuses some of such calls
                with pytest.raises(BlendNotFound):
                    client.get("0" * 32)
        with (
            BlenderClient(server.address, token="x" * 17_000, patience_s=0) as client,
            pytest.raises(InvalidRequest, match=r"too large .* Send less"),
        ):
            client.get("0" * 32)


class Stuck(Blend):
    """A blend one of whose sources gives nothing."""

    def fetch(self, *_: object, call: CallContext | None = None, **__: object) -> Iterator[StepBlock]:
        assert call is not None
        self.calls.append(call)
        while True:
            call.wait(0.01, lambda: "Source `wiki` has 4 rows, step 1 needs 8. Append to it.")
            yield from ()

    calls: list[CallContext]


@pytest.fixture
def stuck(blends: Blends) -> tuple[str, list[CallContext]]:
    """A blend whose rows never come, and the callers that wait for them."""
    blend = blends.open(blends.create([Source(table=CODE, weight=1)]).id)
    blend.__class__ = Stuck
    blend.calls = []  # type: ignore[attr-defined]
    return blend.id, blend.calls  # type: ignore[attr-defined]


@pytest.mark.invariant("No wait outlasts its call, and a call that times out names the cause of the wait.")
def test_a_call_that_waits_too_long_names_the_source(
    blends: Blends, stuck: tuple[str, list[CallContext]]
) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(wait_s=0.2)) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        error = refused(stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=stuck[0])))
        assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "Source `wiki` has 4 rows" in error.details()
        assert type(to_error(error, server.address)) is Stalled


def test_a_wait_ends_before_the_deadline_and_names_the_source(
    blends: Blends, stuck: tuple[str, list[CallContext]]
) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(wait_s=600)) as server,
        BlenderClient(server.address, timeout_s=60, patience_s=0) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        reading = pool.submit(next, client.fetch(stuck[0]))
        assert eventually(lambda: len(stuck[1]) > 0)
        (call,) = stuck[1]
        assert 0 < call.remaining_s < 59.7  # 59.5, and what gRPC rounds a deadline up by
        call.set_timeout(0)  # that time, over at once
        with pytest.raises(Stalled, match="Source `wiki` has 4 rows"):
            reading.result()


@pytest.mark.invariant("No wait outlasts its call, and a call that times out names the cause of the wait.")
def test_a_reader_that_goes_away_ends_the_wait_for_its_rows(
    blends: Blends, stuck: tuple[str, list[CallContext]]
) -> None:
    with (
        BlenderServer(blend_services(blends), limits=Limits(calls=1)) as server,
        grpc.insecure_channel(server.address) as channel,
        BlenderClient(server.address, patience_s=60) as client,
    ):
        stream = stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=stuck[0]))
        assert eventually(lambda: len(stuck[1]) > 0)
        stream.cancel()
        assert client.get(stuck[0]).id == stuck[0]  # the one slot is free again


def test_calls_beyond_the_grace_are_sent_elsewhere(
    blends: Blends, stuck: tuple[str, list[CallContext]]
) -> None:
    server = BlenderServer(blend_services(blends))
    server.start()
    with grpc.insecure_channel(server.address) as channel:
        stream = stub(channel, "BlendData").Fetch(pb.FetchRequest(blend=stuck[0]))
        assert eventually(lambda: len(stuck[1]) > 0)
        server.stop(grace_s=0.1)
        error = refused(stream)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "This Blender is stopping. Ask another one of the lake" in error.details()
    assert type(to_error(error, server.address)) is ServerStopping
