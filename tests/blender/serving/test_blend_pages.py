"""The pages of `List`, over many blends and over a real port."""

from __future__ import annotations

import grpc
import pytest

from blender import BlenderClient, Source
from blender.catalog.blends import Blends, StoredBlend
from blender.catalog.store import Pins
from blender.errors import InvalidRequest
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.serving.blend_pages import page_of_blends
from blender.serving.server import BlenderServer
from blender.spec.config import blend_config
from blender.wire.stubs import stub
from factory.settings import Settings
from tests.blender.lakes import CODE

GRPC_DEFAULT_BYTES = 4 << 20  # the largest message that a client of gRPC takes unless it is told otherwise


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its tables."""
    return shared_lake


def stored(number: int) -> StoredBlend:
    pins = Pins(created_at=f"2026-01-01T00:{number // 4:02}:00", snapshots=())
    return StoredBlend(f"b{number % 4}-{number:03}", blend_config([Source(CODE, 1)], 0), pins)


def message_of(blend: StoredBlend) -> pb.Blend:
    """A blend of 400 sources."""
    sources = [pb.Source(table=f"packed.dataset_{i}", snapshot=i, content="c" * 64) for i in range(400)]
    return pb.Blend(id=blend.id, sources=sources)


@pytest.mark.parametrize("page_size", [0, 1, 7, 120, 500])
def test_pages_hold_every_blend_once_in_messages_that_any_client_takes(page_size: int) -> None:
    blends = [stored(number) for number in range(120)]
    assert sum(message_of(blend).ByteSize() for blend in blends) > GRPC_DEFAULT_BYTES
    ids, token = [], ""
    while True:
        page = page_of_blends(blends, page_size, token, message_of)
        assert page.ByteSize() < GRPC_DEFAULT_BYTES
        assert 0 < len(page.blends) <= (page_size or 120)
        ids += [blend.id for blend in page.blends]
        if not (token := page.next_page_token):
            break
    assert ids == [blend.id for blend in blends]


def test_a_blend_over_the_bound_is_a_page_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blender.serving.blend_pages.MAX_PAGE_BYTES", 1000)
    page = page_of_blends([stored(0), stored(1)], 0, "", message_of)
    assert [blend.id for blend in page.blends] == [stored(0).id]
    assert page.next_page_token


def test_blends_that_come_and_go_move_no_other_blend() -> None:
    blends = [stored(number) for number in range(9)]
    first = page_of_blends(blends, 4, "", message_of)
    changed = [blends[0], *blends[2:3], *blends[4:], stored(9)]  # also the last one of the page is retired
    second = page_of_blends(changed, 0, first.next_page_token, message_of)
    assert [blend.id for blend in second.blends] == [blend.id for blend in [*blends[4:], stored(9)]]


@pytest.mark.parametrize(
    "token", ["x", "bnVsbA==", "WzEsIDJd", "\u00e4", "ImFiIg==", "eyJhIjoxLCJiIjoyfQ==", "W1tb" * 50_000]
)
def test_a_foreign_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not a page token\. Pass the next_page_token"):
        page_of_blends([], 0, token, message_of)
    with pytest.raises(InvalidRequest, match="page_size is -1"):
        page_of_blends([], -1, "", message_of)


def test_the_client_reads_all_pages(
    client: BlenderClient, blends: Blends, server: BlenderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blender.serving.blend_pages.MAX_PAGE_BYTES", 200)
    for seed in range(20, 25):
        client.create([Source(CODE, 1)], seed=seed)
    ids = [blend.id for blend in blends.list()]
    assert len(ids) >= 5
    assert [record.id for record in client.list()] == ids
    with grpc.insecure_channel(server.address) as channel:
        configs = stub(channel, "BlendConfigs")
        page = configs.List(pb.ListRequest(page_size=2))
        assert 0 < len(page.blends) <= 2
        with pytest.raises(grpc.RpcError) as refused:
            configs.List(pb.ListRequest(page_token="x"))
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT  # type: ignore[attr-defined]
