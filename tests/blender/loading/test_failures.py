"""Constructors that are killed, stopped or changed, and idle ranks: nothing is lost, nothing comes twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from blender.arrays import as_numpy
from blender.catalog.blends import open_blends
from blender.errors import BlenderUnavailable, PlanChanged, Unauthenticated
from blender.loading import service
from blender.loading.client import LoadingClient
from blender.loading.constructors import ConstructorClient
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.records import Source
from blender.serving.security import ServerSecurity
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.local import open_blend
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, ROOT, serving
from tests.blender.programs import eventually
from tests.ports import free_ports

STEPS = 25
MODEL = "hidden=16,layers=2"
IN_PIECES = "from blender.loading import serve, service; service.BLOCK_BYTES = 200; serve.run()"


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """36 rows of code and 12 of prose in each of 25 steps."""
    sources = [Source(CODE, 36, oversample=True, shuffle="row"), Source(PROSE, 12)]
    return open_blends(shared_lake).create(sources, seed=7).id


def spec_of(blend: str, **fields: Any) -> LoadingSpec:
    given = {"mesh": Mesh(dp=2, cp=2), "model": Backbone(16, 2), "microbatches": 2} | fields
    return LoadingSpec(blend=blend, **given)


def origins_of(rows: pa.RecordBatch) -> list[tuple[int, int, int]]:
    columns = (as_numpy(rows.column(name)).tolist() for name in ("source", "epoch", "ordinal"))
    return list(zip(*columns, strict=True))


def constructor(home: Path, port: int, *arguments: str, program: str = IN_PIECES) -> subprocess.Popen[str]:
    """A constructor in a process of its own, whose steps travel in many messages."""
    command = [sys.executable, "-c", program, *arguments, "--model", MODEL, "--port", str(port)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "FACTORY_HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
@pytest.mark.parametrize("kills", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_constructor_that_is_killed_loses_and_repeats_nothing(
    shared_lake: Settings, blend: str, kills: int
) -> None:
    spec, (port,) = spec_of(blend), free_ports(1)
    arguments = (blend, "--mesh", "dp=2,cp=2", "--microbatches", "2")
    running = [constructor(shared_lake.home, port, *arguments)]
    restarted = [threading.Event() for _ in range(kills)]
    read: dict[int, list[pa.RecordBatch]] = {rank: [] for rank in range(spec.mesh.ranks)}
    client = LoadingClient(f"127.0.0.1:{port}", prefetch_bytes=1)
    loading = client.open(spec_of(blend, model=Backbone(16, 2, vocabulary=0)).id)

    def train(rank: int) -> None:
        for number, step in enumerate(loading.read(StepRange(0, STEPS), rank)):
            read[rank].append(step.arrow)
            for event in restarted[number : number + 1]:  # the constructor dies after each of the first steps
                event.wait(60)

    ranks = [threading.Thread(target=train, args=(rank,)) for rank in read]
    for thread in ranks:
        thread.start()
    for number, event in enumerate(restarted):
        assert eventually(lambda n_steps=number + 1: all(len(steps) == n_steps for steps in read.values()))
        running[-1].kill()
        running[-1].wait()
        event.set()
        running.append(constructor(shared_lake.home, port, *arguments))
    for thread in ranks:
        thread.join(60)
    running[-1].kill()
    running[-1].wait()
    embedded = open_loading(spec, shared_lake)
    for rank, steps in read.items():
        undisturbed = [step.arrow for step in embedded.read(StepRange(0, STEPS), rank)]
        assert all(one.equals(other) for one, other in zip(steps, undisturbed, strict=True))
    embedded.close()
    client.close()


def test_a_constructor_that_stops_answering_is_reported_in_time(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_s: list[float] = []
    load = ConstructorClient.load

    def noting(self: ConstructorClient, request: Any, waited_s: float) -> Any:
        waits_s.append(waited_s)
        return load(self, request, waited_s)

    monkeypatch.setattr(ConstructorClient, "load", noting)
    (port,) = free_ports(1)
    process = constructor(shared_lake.home, port, blend, "--mesh", "dp=2", "--microbatches", "2")
    client = LoadingClient(f"127.0.0.1:{port}", prefetch_bytes=1, timeout_s=2, patience_s=1)
    steps = client.open().read(StepRange(0, STEPS), 0)
    assert next(steps).offset == 0
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(BlenderUnavailable, match="did not answer in time"):
        list(steps)
    assert waits_s[0] == 0 < waits_s[-1] < 2, "the last stream has what is left of `timeout_s`"
    process.kill()
    process.wait()
    with pytest.raises(BlenderUnavailable, match="does not answer"):
        client.open()
    client.close()


@pytest.mark.slow
def test_another_constructor_takes_over_from_one_that_stops_answering(
    shared_lake: Settings, blend: str
) -> None:
    spec, (port,) = spec_of(blend, mesh=Mesh(dp=2)), free_ports(1)
    process = constructor(shared_lake.home, port, blend, "--mesh", "dp=2", "--microbatches", "2")
    blends = open_blends(shared_lake)
    loader = served_loader(blends.open(blend), spec)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as other:
        addresses = [f"127.0.0.1:{port}", other.address]
        with LoadingClient(addresses, prefetch_bytes=1, timeout_s=2, patience_s=1) as client:
            steps = client.open(spec.id).read(StepRange(0, STEPS), 0)
            assert next(steps).offset == 0
            process.send_signal(signal.SIGSTOP)
            assert [step.offset for step in steps] == list(range(1, STEPS))
    process.kill()
    process.wait()
    loader.close()


STRATEGY = """
from blender.loading import DGraph, tokens

def mine(step, tree, spec):
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(spec.model, memory=tokens)
    graph.balance("{method}", level="both", **spec.balancing)
    return graph.plan()
"""


def test_a_strategy_that_changes_in_mid_run_is_refused(
    shared_lake: Settings, blend: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    arguments = (blend, "--mesh", "dp=2", "--microbatches", "2", "--strategy", "mine:mine", "--model", MODEL)
    module = tmp_path / "mine.py"
    module.write_text(STRATEGY.format(method="greedybinpacking"))
    with serving(shared_lake.home, *arguments, port=port, package="blender.loading", cwd=tmp_path) as server:
        client = LoadingClient(server.address, prefetch_bytes=1)
        steps = client.open().read(StepRange(0, STEPS), 1)
        assert [next(steps).offset for _ in range(3)] == [0, 1, 2]
    module.write_text(STRATEGY.format(method="zigzag"))
    with (
        serving(shared_lake.home, *arguments, port=port, package="blender.loading", cwd=tmp_path),
        pytest.raises(PlanChanged, match="The code of strategy `mine:mine` differs"),
    ):
        list(steps)
    client.close()


@pytest.fixture
def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "BLOCK_BYTES", 200)


@pytest.mark.usefixtures("small_messages")
def test_a_rank_that_never_reads_stops_no_other_and_holds_little(shared_lake: Settings, blend: str) -> None:
    blends = open_blends(shared_lake)
    loader = served_loader(blends.open(blend), spec_of(blend), memory_bytes=200_000)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        client = LoadingClient(server.address, prefetch_bytes=1)
        loading = client.open()
        idle = loading.read(StepRange(0, STEPS), 0)
        next(idle)
        for rank in (1, 2, 3):
            assert [step.offset for step in loading.read(StepRange(0, STEPS), rank)] == list(range(STEPS))
        assert loader.held <= 200_000
        assert [step.offset for step in idle] == list(range(1, STEPS))
        client.close()
    loader.close()


def test_a_call_without_the_token_is_refused(shared_lake: Settings, blend: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("secret-of-the-run-0123456789\n")
    tokens.chmod(0o600)
    blends = open_blends(shared_lake)
    loader = served_loader(blends.open(blend), spec_of(blend))
    services = [*blend_services(blends), loading_service(loader, blends)]
    with BlenderServer(services, security=ServerSecurity(tokens=tokens)) as server:
        with pytest.raises(Unauthenticated, match="token"):
            LoadingClient(server.address, token="another").open()
        loading = LoadingClient(server.address, token="secret-of-the-run-0123456789").open()
        assert next(loading.read(StepRange(3, 1), 3)).offset == 3
    loader.close()


def rows_of_ranks(datasets: Iterator[Iterable[Any]], stop: int) -> list[list[tuple[int, int, int]]]:
    """The rows of each step up to `stop`, of all ranks together."""
    steps: list[list[tuple[int, int, int]]] = []
    for dataset in datasets:
        for number, step in enumerate(dataset):
            if number == len(steps):
                steps.append([])
            steps[number] += origins_of(step.arrow)
    return [sorted(step) for step in steps][:stop]


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
def test_a_run_goes_on_with_other_ranks_and_as_a_blend(shared_lake: Settings, blend: str) -> None:
    pytest.importorskip("torch")
    from blender.loading.torch import LoadingDataset
    from blender.trainer.torch import BlendDataset

    state: dict[str, Any] = {"blend": blend, "offset": 0}
    read: list[list[tuple[int, int, int]]] = []
    for dp, stop in ((8, 5), (6, 11), (2, 16)):
        spec = spec_of(blend, mesh=Mesh(dp=dp), microbatches=2)
        with_rows = open_loading(spec, shared_lake)
        datasets = [
            LoadingDataset(with_rows, rank=rank, stop=stop, tensors=lambda step: step) for rank in range(dp)
        ]
        for dataset in datasets:
            dataset.load_state_dict(state)
        read += rows_of_ranks(iter(datasets), stop)
        states = [dataset.state_dict() for dataset in datasets]
        assert states == [{"blend": blend, "offset": stop}] * dp
        state = states[0]
        with_rows.close()
    plain = BlendDataset(open_blend(blend, shared_lake), stop=20, rank=0, ranks=1, tensors=lambda step: step)
    plain.load_state_dict(state)
    read += [sorted(origins_of(batch.arrow)) for batch in plain]
    whole = open_blends(shared_lake).open(blend)
    assert read == [sorted(origins_of(whole.step(offset))) for offset in range(20)]
    back = LoadingDataset(open_loading(spec_of(blend), shared_lake), rank=0, stop=23)
    back.load_state_dict(plain.state_dict())
    assert [step["offset"] for step in back] == [20, 21, 22]
