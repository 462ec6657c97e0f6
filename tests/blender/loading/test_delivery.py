"""Planned steps reach the ranks that the plan names, embedded and served, from one copy of each row."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest

from blender.arrays import as_numpy
from blender.call_context import CallContext, use_context
from blender.catalog.blends import open_blends
from blender.errors import CallCancelled, EndOfData, InvalidRequest, PlanChanged
from blender.ipc import from_ipc
from blender.loading import service
from blender.loading.client import LoadingClient
from blender.loading.constructors import ConstructorClient
from blender.loading.costs import Backbone, tokens
from blender.loading.embedded import EmbeddedLoading, open_loading
from blender.loading.graph import DGraph
from blender.loading.handle import LoadingHandle
from blender.loading.loader import Loader
from blender.loading.planner import open_planner
from blender.loading.roles.constructor import DataConstructor
from blender.loading.service import loading_service, messages, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.opened.blend import Blend
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.wire.status import to_error
from blender.wire.wire import parse
from factory.settings import Settings
from tests.blender.lakes import CODE, LENGTH, PROSE
from tests.blender.programs import end_workers, eventually

MODEL = Backbone(hidden=16, layers=2)
ROWS = 32


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """24 rows of code and 8 of prose in a step."""
    sources = [Source(CODE, 24, oversample=True, shuffle="row"), Source(PROSE, 8)]
    return open_blends(shared_lake).create(sources, seed=7).id


def spec_of(blend: str, **fields: Any) -> LoadingSpec:
    given = {"mesh": Mesh(dp=2, cp=2, tp=2), "model": MODEL, "microbatches": 4} | fields
    return LoadingSpec(blend=blend, **given)


def read(loading: LoadingHandle, rank: int, offset: int = 0, steps: int = 3) -> list[LoadedStep]:
    return list(loading.read(StepRange(offset, steps), rank))


def origins_of(rows: pa.RecordBatch) -> list[tuple[int, int, int]]:
    columns = (as_numpy(rows.column(name)).tolist() for name in ("source", "epoch", "ordinal"))
    return list(zip(*columns, strict=True))


MESHES = [
    {"mesh": Mesh(dp=2, cp=2, tp=2)},
    {"mesh": Mesh(dp=4, pp=2, order="dp-tp-cp-pp"), "strategy": "plain"},
    {"mesh": Mesh(pp=4, dp=2), "microbatches": 8, "barrier": "step"},
    {"mesh": Mesh(dp=4), "equal_counts": False, "microbatches": 3, "group_size": 2},
    {"mesh": Mesh(dp=2, cp=2), "chunking": "document"},
]


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
@pytest.mark.parametrize("fields", MESHES)
def test_each_rank_reads_the_microbatches_of_its_bucket(
    open_handle: Any, shared_lake: Settings, blend: str, fields: dict[str, Any]
) -> None:
    spec = spec_of(blend, **fields)
    loading, planner = open_handle(spec), open_planner(spec, shared_lake)
    plans = [planner.plan(offset) for offset in (2, 3)]
    for consumer in plans[0].consumers:
        steps = read(loading, consumer.rank, offset=2, steps=2)
        assert [step.offset for step in steps] == [2, 3]
        for step, plan in zip(steps, plans, strict=True):
            assert step.plan == plan.hash
            assert step.has_tokens == consumer.needs_tokens
            rows = plan.rows_of_bucket(consumer.bucket)
            columns = (plan.step.source, plan.step.epoch, plan.step.ordinal)
            assert origins_of(step.arrow) == list(
                zip(*(column[rows].tolist() for column in columns), strict=True)
            )
            counts = [len(plan.rows_of(consumer.bucket, bin)) for bin in range(plan.bins)]
            assert [len(microbatch) for microbatch in step.microbatches] == counts


def test_a_rank_that_computes_alone_gets_the_batch_of_the_blend(
    open_handle: Any, shared_lake: Settings, blend: str
) -> None:
    step = read(open_handle(spec_of(blend, mesh=Mesh(), microbatches=4)), 0, offset=5, steps=1)[0]
    whole = open_blends(shared_lake).open(blend).step(5)
    by_row = {row: number for number, row in enumerate(origins_of(whole))}
    same = whole.take([by_row[row] for row in origins_of(step.arrow)])
    for name in whole.schema.names:
        assert step.arrow.column(name).equals(same.column(name))
    assert sum(len(microbatch.tokens) for microbatch in step.microbatches) == ROWS
    assert step.microbatches[0].targets.shape == (8, LENGTH)


def test_pieces_of_context_parallel_ranks_are_the_rows(open_handle: Any, blend: str) -> None:
    loading = open_handle(spec_of(blend, mesh=Mesh(cp=2), microbatches=2))
    pieces = [read(loading, rank, steps=1)[0].microbatches[1] for rank in range(2)]
    tokens = np.concatenate([piece.tokens for piece in pieces], axis=1)
    places = np.concatenate([piece.places for piece in pieces], axis=1)
    ordered = np.take_along_axis(tokens, np.argsort(places, axis=1), axis=1)
    first = ordered[:, :1]
    short = np.arange(LENGTH) >= np.where(first // 100 % 4 == 3, 6, LENGTH)
    assert (ordered == np.where(short, 0, first + np.arange(LENGTH))).all()


def test_stages_between_the_first_and_the_last_get_lengths_alone(open_handle: Any, blend: str) -> None:
    loading = open_handle(spec_of(blend, mesh=Mesh(pp=4), microbatches=4))
    first, second, third, last = (read(loading, rank, steps=1)[0] for rank in range(4))
    assert [step.has_tokens for step in (first, second, third, last)] == [True, False, False, True]
    assert first.arrow.equals(last.arrow)
    for between in (second, third):
        assert between.microbatches[2].cu_seqlens.tolist() == first.microbatches[2].cu_seqlens.tolist()
        assert (between.microbatches[2].position_ids == first.microbatches[2].position_ids).all()
        with pytest.raises(InvalidRequest, match="tokens"):
            between.microbatches[0].tokens  # noqa: B018


@pytest.mark.parametrize(
    "broadcast, readers",
    [
        (("tp",), [0, 4, 8, 12]),
        (("tp/2",), [0, 2, 4, 6, 8, 10, 12, 14]),
        (("tp", "cp"), [0, 8]),
        ((), list(range(16))),
    ],
)
def test_ranks_read_for_the_others_as_the_spec_says(
    open_handle: Any, blend: str, broadcast: tuple[str, ...], readers: list[int]
) -> None:
    loading = open_handle(spec_of(blend, mesh=Mesh(dp=2, cp=2, tp=4), broadcast=broadcast))
    for rank in range(16):
        if rank in readers:
            read(loading, rank, steps=1)
        else:
            with pytest.raises(InvalidRequest, match="broadcast"):
                read(loading, rank, steps=1)
    if "cp" in broadcast:
        assert read(loading, 0, steps=1)[0].microbatches[0].tokens.shape[1] == LENGTH


def test_workers_read_every_stride_th_step_and_the_end_is_an_error_only_if_more_was_asked_for(
    open_handle: Any, blend: str
) -> None:
    loading = open_handle(spec_of(blend))
    last = 300 // 8  # the prose lasts 37 steps
    assert [step.offset for step in loading.read(StepRange(1, 10, 4), 0)] == [1, 5, 9]
    assert [step.offset for step in loading.read(StepRange(last - 3, None, 2), 2)] == [last - 3, last - 1]
    assert list(loading.read(StepRange(5, 0), 0)) == []
    reading = loading.read(StepRange(last - 2, 5), 0)
    assert [next(reading).offset, next(reading).offset] == [last - 2, last - 1]
    with pytest.raises(EndOfData, match=PROSE):
        next(reading)


def test_a_step_may_be_pickled(open_handle: Any, blend: str) -> None:
    step = read(open_handle(spec_of(blend)), 2, steps=1)[0]
    copy = pickle.loads(pickle.dumps(step))
    assert copy.arrow.equals(step.arrow)
    assert (copy.offset, copy.plan) == (0, step.plan)
    assert (copy.microbatches[1].tokens == step.microbatches[1].tokens).all()


@pytest.mark.parametrize("rank", [8, -1])
def test_a_rank_outside_the_mesh_is_refused(open_handle: Any, blend: str, rank: int) -> None:
    loading = open_handle(spec_of(blend))
    with pytest.raises(InvalidRequest, match=f"Rank {rank} was asked for, and the mesh .* has ranks 0 to 7"):
        read(loading, rank)
    read(loading, 0)


def loader_of(lake: Settings, spec: LoadingSpec, **options: Any) -> Loader[pa.RecordBatch]:
    blend = open_blends(lake).open(spec.blend)
    return Loader(blend, spec, lambda rows: rows, lambda rows: rows.nbytes, **options)


def batch_of(loader: Loader[Any], offset: int, rank: int) -> Any:
    """A step of a rank that takes no other."""
    return next(loader.batches(StepRange(offset, 1), rank))[1]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows of all reads of blends from now on."""
    counts: list[int] = []
    read_rows = Blend.read

    def counting(self: Blend, origins: Any, steps: Any) -> Any:
        counts.append(len(steps))
        return read_rows(self, origins, steps)

    monkeypatch.setattr(Blend, "read", counting)
    return counts


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
@pytest.mark.parametrize("n_loaders", [1, 2])
def test_each_row_is_read_once_for_all_ranks(
    shared_lake: Settings, blend: str, n_loaders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = counted(monkeypatch)
    spec = spec_of(blend, mesh=Mesh(dp=2, cp=2, tp=2, pp=2), broadcast=())
    loader = loader_of(shared_lake, spec, loaders=n_loaders, ahead=2)
    copies = []
    for rank in loader.ranks:
        copies += [rows for _, rows in loader.batches(StepRange(0, 3), rank)]
    assert sum(counts) == 3 * ROWS
    assert len({id(copy) for copy in copies}) == 3 * 2 * 2  # steps, buckets, pieces
    assert loader.held == 0
    loader.close()


def test_sources_dealt_to_many_loaders_give_the_same_rows(shared_lake: Settings, blend: str) -> None:
    made = [loader_of(shared_lake, spec_of(blend), loaders=n) for n in (1, 2, 9)]
    for rank in (0, 2, 4, 6):
        first, *others = [batch_of(loader, 4, rank) for loader in made]
        assert all(other.equals(first) for other in others)
    for loader in made:
        loader.close()


def test_a_late_rank_gets_an_equal_batch_made_again(shared_lake: Settings, blend: str) -> None:
    loader = loader_of(shared_lake, spec_of(blend), memory_bytes=4_000)
    early = [batch_of(loader, offset, 0) for offset in range(12)]
    assert loader.held <= 4_000
    late = [batch_of(loader, offset, 2) for offset in range(12)]
    again = [batch_of(loader, offset, 0) for offset in range(12)]
    assert all(one.equals(other) for one, other in zip(early, again, strict=True))
    assert [one.column("ordinal") for one in late] == [one.column("ordinal") for one in early]
    loader.close()


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
def test_a_step_of_many_messages_is_one_step(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BLOCK_BYTES", 300)
    blends, spec = open_blends(shared_lake), spec_of(blend)
    loader = served_loader(blends.open(blend), spec)
    assert len(batch_of(loader, 0, 0)) > 3
    embedded = open_loading(spec, shared_lake)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        served = LoadingClient(server.address).open()
        for rank in loader.ranks:
            for one, other in zip(read(served, rank), read(embedded, rank), strict=True):
                assert one.arrow.equals(other.arrow)
    embedded.close()


def test_a_step_a_little_above_the_size_of_a_message_is_one_message(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = open_blends(shared_lake).open(blend).step(0)
    for share, n_messages in ((1.2, 1), (0.9, 1), (0.4, 2), (1e-9, ROWS)):
        monkeypatch.setattr(service, "BLOCK_BYTES", share * rows.nbytes)
        parts = [parse(message) for message in messages(rows)]
        assert [part.next_offset for part in parts] == [0] * (n_messages - 1) + [1]
        sizes = [from_ipc(part.payload).num_rows for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_a_loader_of_other_buckets_or_of_another_spec_is_refused(shared_lake: Settings, blend: str) -> None:
    blends = open_blends(shared_lake)
    spec = spec_of(blend)
    with pytest.raises(InvalidRequest, match="Buckets 2 were asked for"):
        served_loader(blends.open(blend), spec, [2])
    loader = served_loader(blends.open(blend), spec, [1])
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        client = LoadingClient(server.address)
        with pytest.raises(InvalidRequest, match=f"loads spec {spec.id}, and this rank reads spec 0123"):
            client.open("0123")
        loading = client.open()
        assert len(read(loading, 4)) == 3
        with pytest.raises(InvalidRequest, match="serves rank 0"):
            read(loading, 0)
        stub = ConstructorClient(server.address)._connection.load
        for request, sentence in (
            (
                pb.LoadRequest(spec=spec.id, steps=1, rank=0),
                "Rank 0 reads of bucket 0",
            ),
            (pb.LoadRequest(steps=1, rank=4), "spec without an id was asked"),
            (pb.LoadRequest(spec=spec.id, offset=-1, steps=1, rank=4), "Steps -1"),
            (pb.LoadRequest(spec=spec.id, steps=1, rank=4, stride=-2), "stride"),
        ):
            with pytest.raises(grpc.RpcError, match=sentence):
                list(stub(request, timeout=10))
    with (
        BlenderServer(blend_services(blends)) as server,
        pytest.raises(InvalidRequest, match="does not know this call"),
    ):
        LoadingClient(server.address).open()


def test_another_plan_in_mid_run_is_refused(shared_lake: Settings, blend: str) -> None:
    blends = open_blends(shared_lake)
    spec = spec_of(blend)
    loader = served_loader(blends.open(blend), spec)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        client = LoadingClient(server.address)
        (step,) = read(client.open(), 0, offset=3, steps=1)
        stub = ConstructorClient(server.address)._connection.load
        request = pb.LoadRequest(spec=spec.id, offset=4, steps=1, rank=0, last_plan=step.plan)
        assert len(list(stub(request, timeout=10))) == 1
        request.last_plan ^= 1
        with pytest.raises(grpc.RpcError) as caught:
            list(stub(request, timeout=10))
        error = to_error(caught.value, server.address)
        assert isinstance(error, PlanChanged)
        assert f"Rank 0 read step 3 under plan {step.plan ^ 1:016x}" in str(error)


@pytest.mark.parametrize("opened_ranks", [16])
def test_more_ranks_than_the_queues_have_room_for_read_at_once(
    shared_lake: Settings, blend: str, opened_ranks: int
) -> None:
    loader = loader_of(shared_lake, spec_of(blend, mesh=Mesh(dp=opened_ranks), microbatches=2))
    read_steps: dict[int, list[int]] = {}

    def train(rank: int) -> None:
        with use_context(CallContext(20)):
            read_steps[rank] = [offset for offset, _ in loader.batches(StepRange(0, 4), rank)]

    ranks = [threading.Thread(target=train, args=(rank,)) for rank in range(opened_ranks)]
    for thread in ranks:
        thread.start()
    for thread in ranks:
        thread.join()
    assert read_steps == {rank: [0, 1, 2, 3] for rank in range(opened_ranks)}
    loader.close()


def test_a_bucket_without_a_row_of_a_loader_is_read(shared_lake: Settings, blend: str) -> None:
    spec = spec_of(blend, mesh=Mesh(dp=32), microbatches=1)  # a row each, of one of two sources
    loaders = [loader_of(shared_lake, spec, loaders=n) for n in (1, 2)]
    one, two = ([batch_of(loader, 0, rank) for rank in range(32)] for loader in loaders)
    assert all(rows.equals(others) for rows, others in zip(one, two, strict=True))
    for loader in loaders:
        loader.close()


def test_a_microbatch_without_rows_is_refused(shared_lake: Settings, blend: str) -> None:
    spec = spec_of(blend, mesh=Mesh(dp=12), microbatches=3, equal_counts=False)
    with pytest.raises(InvalidRequest, match="it has 32 for 36 microbatches"):
        loader_of(shared_lake, spec)


def test_a_closed_loader_says_so(shared_lake: Settings, blend: str) -> None:
    loading = open_loading(spec_of(blend), shared_lake)
    steps = loading.read(StepRange(0, 9), 0)
    next(steps)
    loading.close()
    with pytest.raises(CallCancelled, match="was closed"):
        list(steps)
    assert next(loading.read(StepRange(4, 1), 0)).offset == 4  # opened again
    loading.close()


def test_a_loader_that_is_dropped_ends_its_threads(shared_lake: Settings, blend: str) -> None:
    before = set(threading.enumerate())
    loading = open_loading(spec_of(blend), shared_lake)
    assert len(read(loading, 0)) == 3
    threads = set(threading.enumerate()) - before
    assert any(thread.name.startswith("loading-") for thread in threads)
    del loading
    gc.collect()
    assert eventually(lambda: not any(thread.is_alive() for thread in threads)), threads


def test_steps_are_made_ahead_along_the_stride(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    make = DataConstructor.make

    def noting(self: DataConstructor[Any], offset: int, bucket: int) -> Any:
        made.append(offset)
        return make(self, offset, bucket)

    monkeypatch.setattr(DataConstructor, "make", noting)
    loader = loader_of(shared_lake, spec_of(blend), ahead=1)
    assert [offset for offset, _ in loader.batches(StepRange(1, 12, 5), 0)] == [1, 6, 11]
    assert made == [1, 6, 11]
    loader.close()


@pytest.mark.parametrize(
    "steps", [StepRange(2, 2, 0), StepRange(2, 2, -1), StepRange(-1, 1), StepRange(2, -1)]
)
def test_ranges_that_no_blend_has_are_refused(open_handle: Any, blend: str, steps: StepRange) -> None:
    loading = open_handle(spec_of(blend))
    with pytest.raises(InvalidRequest, match=r"Give a whole number"):
        list(loading.read(steps, 0))


@pytest.mark.parametrize("addresses", ["", " , ", []])
def test_a_client_without_addresses_is_refused(addresses: Any) -> None:
    with pytest.raises(InvalidRequest, match="No address of a constructor was given"):
        LoadingClient(addresses)


def test_constructors_that_plan_differently_are_refused(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    blends = open_blends(shared_lake)
    spec = spec_of(blend, strategy="tests.blender.loading.test_delivery:by_hand")
    services = [
        *blend_services(blends),
        loading_service(served_loader(blends.open(blend), spec, [0]), blends),
    ]
    monkeypatch.setattr(sys.modules[__name__], "METHOD", "zigzag")
    others = [*blend_services(blends), loading_service(served_loader(blends.open(blend), spec, [1]), blends)]
    with (
        BlenderServer(services) as one,
        BlenderServer(others) as other,
        pytest.raises(PlanChanged, match=r"The constructors at \S+ and \S+ plan step 0 of spec"),
    ):
        read(LoadingClient([one.address, other.address]).open(), 4)


METHOD = "greedybinpacking"


def by_hand(step: Any, tree: Any, spec: LoadingSpec) -> Any:
    """A strategy whose code changes with METHOD."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(spec.model, memory=tokens)
    graph.balance(METHOD, level="both", reorder=False, **spec.balancing)
    return graph.plan()


@pytest.mark.parametrize("context", [pytest.param("spawn", marks=pytest.mark.slow), "fork"])
def test_workers_of_a_torch_loader_read_the_steps_in_order(
    open_handle: Any, blend: str, context: str
) -> None:
    pytest.importorskip("torch")
    from blender.loading.torch import LoadingDataset
    from blender.trainer.torch import BlendLoader

    loading = open_handle(spec_of(blend))
    if context == "fork" and isinstance(loading, EmbeddedLoading):
        loader = BlendLoader(LoadingDataset(loading, rank=0, stop=4), workers=1, context="fork")
        with pytest.raises(InvalidRequest, match="forked after its parent had opened the loader"):
            next(iter(loader))
        end_workers()
        return
    dataset = LoadingDataset(loading, rank=0, offset=1, stop=9)
    loader = BlendLoader(dataset, workers=2, context=context)
    assert [step["offset"] for step in loader] == list(range(1, 9))
    assert loader.state_dict() == {"blend": blend, "offset": 9}


def test_a_pickled_dataset_reads_the_same_steps(open_handle: Any, blend: str) -> None:
    pytest.importorskip("torch")
    from blender.loading.torch import LoadingDataset

    dataset = LoadingDataset(open_handle(spec_of(blend)), rank=0, offset=1, stop=4)
    items = list(pickle.loads(pickle.dumps(dataset)))
    assert [step["offset"] for step in items] == [1, 2, 3]
    assert all(len(step["microbatches"]) == 4 for step in items)


def test_a_dataset_takes_its_rank_from_torchrun_which_must_start_the_mesh(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from blender.loading.torch import LoadingDataset

    loading = open_loading(spec_of(blend, mesh=Mesh(dp=4)), shared_lake)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert LoadingDataset(loading).rank == 3
    monkeypatch.setenv("WORLD_SIZE", "6")
    with pytest.raises(InvalidRequest, match="This run has 6 ranks"):
        LoadingDataset(loading)
    loading.close()


def test_a_batch_that_fails_is_tried_again_and_hurts_no_other(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = loader_of(shared_lake, spec_of(blend), ahead=0)
    read_rows = Blend.read
    failures = iter([OSError("the disk is away")])

    def failing(self: Blend, origins: Any, steps: Any) -> Any:
        for failure in failures:
            raise failure
        return read_rows(self, origins, steps)

    monkeypatch.setattr(Blend, "read", failing)
    with pytest.raises(OSError, match="away"):
        batch_of(loader, 0, 0)
    assert batch_of(loader, 0, 0).num_rows == ROWS // 2
    loader.close()
