"""The client: what it imports, what goes over the wire, and a server that breaks under it."""

from __future__ import annotations

import hashlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_tools import protoc

from blender.catalog.blends import Blends, open_blends
from blender.errors import BlenderFailure, BlenderUnavailable, BlendNotFound
from blender.ipc import to_ipc
from blender.opened.blend import Blend
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import DATA, blend_services
from blender.spec.ranks import RankSlice
from blender.spec.step_range import StepRange
from blender.trainer.client import BlenderClient
from blender.wire.wire import OutgoingBlock, serialize
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, ROOT
from tests.blender.programs import run
from tests.ports import free_ports

SOURCES = [Source(CODE, 6, oversample=True, shuffle="row"), Source(PROSE, 2)]


@pytest.fixture(scope="module")
def blends(shared_lake: Settings) -> Blends:
    """The blends of a lake that no test changes."""
    return open_blends(shared_lake)


@pytest.mark.invariant("Importing the client loads no engine and no heavy library.")
def test_importing_the_client_brings_no_engine_and_no_heavy_library() -> None:
    engines = {"pyspark", "dagster", "pyiceberg", "sqlalchemy", "torch"}
    libraries = {"pydantic", "pandas", "scipy"}
    program = (
        "import sys, blender.trainer.client; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    imported = set(run(program, PYTHONPATH=str(ROOT)).split())
    assert "grpc" in imported
    assert not imported & (engines | libraries)


ALONE = """
import sys
sys.path[:] = [sys.argv[1], *(entry for entry in sys.path if "site-packages" in entry or "python3" in entry)]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__.lower()]
import grpc, hashlib
from blender.proto.blender.v1 import blender_pb2 as pb, blender_pb2_grpc as stubs

try:
    import blender.trainer.client
except ImportError:
    pass
else:
    raise SystemExit("this process can import the client")
import pyarrow as pa
rows = hashlib.blake2b()
with grpc.insecure_channel(sys.argv[2]) as channel:
    for message in stubs.BlendDataStub(channel).Fetch(pb.FetchRequest(blend=sys.argv[3], offset=2, steps=30)):
        rows.update(message.payload)
print(rows.hexdigest())
"""


@pytest.mark.invariant(
    "A blend read in the trainer's process has the bytes that a server sends, and a client generated from"
    " the proto file alone receives the same bytes."
)
def test_a_client_made_from_the_proto_alone_fetches_the_same_bytes(
    client: BlenderClient, server: BlenderServer, blends: Blends, tmp_path: Path
) -> None:
    proto = "blender/proto/blender/v1/blender.proto"
    arguments = ["protoc", f"-I{ROOT}", f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}", proto]
    assert protoc.main(arguments) == 0
    blend = client.create(SOURCES, seed=7)
    got = run(ALONE, str(tmp_path), server.address, blend.id, PYTHONPATH="").strip()
    ours = hashlib.blake2b()
    request = pb.FetchRequest(blend=blend.id, offset=2, steps=30)
    for block in client._connection.fetch(request):
        ours.update(block.payload)
    assert got == ours.hexdigest()


class Breaking:
    """A server whose fetches break as `plan` says, one entry a call, then are whole.

    An entry is how many blocks come before an abort, or a function of the blocks to send others.
    """

    def __init__(
        self,
        blend: Blend,
        plan: list[int | Callable[[list[OutgoingBlock]], list[OutgoingBlock]]],
        code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE,
    ) -> None:
        self.blend, self.plan, self.code = blend, plan, code
        self.asked: list[int] = []

    def fetch(self, request: Any, context: grpc.ServicerContext) -> Iterator[OutgoingBlock]:
        self.asked.append(request.offset)
        found = self.blend.fetch(
            StepRange(request.offset, request.steps or None, request.stride or 1),
            RankSlice(request.rank, request.ranks or 1),
            400,
        )
        blocks = [OutgoingBlock(block.offset, block.next_offset, to_ipc(block.batch)) for block in found]
        step = self.plan.pop(0) if self.plan else len(blocks) + 1
        if callable(step):
            yield from step(blocks)
            return
        yield from blocks[:step]
        if step <= len(blocks):
            context.abort(self.code, "gone")

    def __enter__(self) -> str:
        handler = grpc.unary_stream_rpc_method_handler(self.fetch, pb.FetchRequest.FromString, serialize)
        self.server = grpc.server(ThreadPoolExecutor(4))
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(DATA, {"Fetch": handler}),)
        )
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        return f"127.0.0.1:{port}"

    def __exit__(self, *exception: object) -> None:
        self.server.stop(None).wait()


@pytest.fixture(scope="module")
def wide(blends: Blends) -> Blend:
    """Steps of 40 rows, each of them several blocks of 400 bytes."""
    sources = [Source(CODE, 40, oversample=True, shuffle="row")]
    return blends.open(blends.create(sources, seed=7).id)


def test_a_stream_broken_inside_a_step_loses_and_repeats_no_row(wide: Blend) -> None:
    assert len(list(wide.fetch(StepRange(0, 1), block_bytes=400))) > 4
    for stride in (1, 3):
        breaking = Breaking(wide, [3, 0, 1, 9, 2])
        with breaking as address, BlenderClient(address, patience_s=20) as client:
            got = list(client.fetch(wide.id, 5, steps=9, stride=stride))
        assert [batch.offset for batch in got] == list(range(5, 14, stride))
        assert all(batch.arrow.equals(wide.step(batch.offset)) for batch in got)
        assert [batch.next_offset for batch in got] == [batch.offset + stride for batch in got]
        assert len(breaking.asked) == 6
        assert breaking.asked == sorted(breaking.asked)


@pytest.mark.parametrize(
    "harm, sentence",
    [
        (lambda blocks: blocks[:-1], r"ended a fetch before step 4 without a reason\. Check"),
        (lambda blocks: [batch for batch in blocks if batch.offset != 3], "Expected step 3, got step 4"),
        (lambda blocks: [*blocks[:-1], blocks[0]], "Expected step 4, got step 2"),
    ],
)
def test_a_server_that_loses_or_repeats_rows_is_found_out(
    wide: Blend, harm: Callable[[list[OutgoingBlock]], list[OutgoingBlock]], sentence: str
) -> None:
    with Breaking(wide, [harm]) as address, BlenderClient(address) as client:
        reading = client.fetch(wide.id, 2, steps=3)
        assert next(reading).arrow.equals(wide.step(2))
        with pytest.raises(BlenderFailure, match=sentence):
            list(reading)


def test_patience_ends_with_the_address_and_begins_anew_with_every_block(wide: Blend) -> None:
    with Breaking(wide, [4] * 12) as address, BlenderClient(address, patience_s=0.3) as client:
        assert len(list(client.fetch(wide.id, 0, steps=4))) == 4
    with Breaking(wide, [0] * 1000) as address, BlenderClient(address, patience_s=0.3) as client:
        reading = client.fetch(wide.id, 0, steps=4)
        with pytest.raises(BlenderUnavailable, match=f"Blender at {address} does not answer"):
            next(reading)


def test_a_reader_that_rests_longer_than_a_stream_may_last_misses_nothing(wide: Blend) -> None:
    # The time of a stream ends by this status, here or there; `patience_s` is for those without a block.
    breaking = Breaking(wide, [3, 9, 1, 2], grpc.StatusCode.DEADLINE_EXCEEDED)
    with breaking as address, BlenderClient(address, patience_s=0) as client:
        got = list(client.fetch(wide.id, 0, steps=4))
    assert all(batch.arrow.equals(wide.step(batch.offset)) for batch in got)
    assert [batch.offset for batch in got] == [0, 1, 2, 3]
    assert len(breaking.asked) == 5
    silent = Breaking(wide, [0], grpc.StatusCode.DEADLINE_EXCEEDED)
    with (
        silent as address,
        BlenderClient(address, patience_s=0) as client,
        pytest.raises(BlenderUnavailable, match="did not answer in time"),
    ):
        next(client.fetch(wide.id, 0, steps=4))


def test_patience_is_counted_from_the_failure_and_not_from_the_last_block(wide: Blend) -> None:
    n_blocks = len(list(wide.fetch(StepRange(0, 1), block_bytes=400)))
    with Breaking(wide, [n_blocks + 1]) as address:
        client = BlenderClient(address, patience_s=0.5, prefetch_bytes=1)  # prefetches one block
        reading = client.fetch(wide.id, 0, steps=3)
        got = [next(reading)]
        time.sleep(0.8)
        got += list(reading)
        client.close()
    assert [batch.offset for batch in got] == [0, 1, 2]


def test_a_fetch_that_is_closed_ends_its_call_while_it_waits(wide: Blend) -> None:
    waiting, left = threading.Event(), threading.Event()

    class Silent(Breaking):
        def fetch(self, request: Any, context: grpc.ServicerContext) -> Iterator[OutgoingBlock]:
            context.add_callback(left.set)
            yield from list(super().fetch(request, context))
            waiting.set()
            left.wait(60)

    with Silent(wide, [lambda blocks: blocks]) as address, BlenderClient(address) as client:
        reading = client.fetch(wide.id, 0, steps=2)
        next(reading)
        assert waiting.wait(60)
        reading.close()
        assert left.wait(60)


def test_a_client_travels_by_pickle(client: BlenderClient, blends: Blends) -> None:
    blend = client.open(client.create(SOURCES, seed=7).id)
    with pytest.raises(BlendNotFound):
        client.open("0" * 32)
    there = pickle.loads(pickle.dumps(blend))
    assert [batch.arrow for batch in there.fetch(3, 4)] == [
        blends.open(blend.id).step(offset) for offset in range(3, 7)
    ]


LEFT = """
import sys
from blender.trainer.client import BlenderClient
reading = BlenderClient(sys.argv[1]).fetch(sys.argv[2])
print(next(reading).offset)
"""


@pytest.fixture
def lake(shared_lake: Settings) -> Settings:
    """One lake for the file, whose tests change none of its two tables."""
    return shared_lake


def test_a_program_may_end_with_a_fetch_half_read(client: BlenderClient, server: BlenderServer) -> None:
    blend = client.create([Source(CODE, 1000, oversample=True)])
    assert run(LEFT, server.address, blend.id, PYTHONPATH=str(ROOT)) == "0\n"


def test_another_server_of_the_lake_takes_over(blends: Blends, wide: Blend) -> None:
    """Any name that gRPC resolves to several addresses will do."""
    ports = free_ports(2)
    servers = [BlenderServer(blend_services(blends), port=port) for port in ports]
    for one in servers:
        one.start()
    address = "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports)
    with BlenderClient(address, patience_s=20, prefetch_bytes=1) as client:
        reading = client.fetch(wide.id, 0, steps=2000)
        got = [next(reading)]
        servers[0].stop(0)
        got += list(reading)
        servers[1].stop(0)
    assert [batch.offset for batch in got] == list(range(2000))
    assert got[1999].arrow.equals(wide.step(1999))
