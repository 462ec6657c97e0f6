"""A rank opens a few connections, finds the constructor of its bucket, and another one stands in for it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from blender.catalog.blends import open_blends
from blender.errors import BlenderUnavailable, InvalidRequest, PlanChanged
from blender.loading.client import LoadingClient
from blender.loading.constructors import ConstructorClient, Constructors
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.loader import Loader
from blender.loading.plan import Plan
from blender.loading.service import loading_service, messages, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import llm_balance, plain
from blender.loading.tree import ClientPlaceTree
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE
from tests.ports import free_ports

RANKS = 4


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """24 rows of code and 8 of prose in each of 37 steps."""
    sources = [Source(CODE, 24, oversample=True, shuffle="row"), Source(PROSE, 8)]
    return open_blends(shared_lake).create(sources, seed=7).id


def spec_of(blend: str, **fields: Any) -> LoadingSpec:
    given = {"mesh": Mesh(dp=RANKS), "model": Backbone(16, 2), "microbatches": 2} | fields
    return LoadingSpec(blend=blend, **given)


@contextmanager
def serving(lake: Settings, spec: LoadingSpec, *buckets: list[int]) -> Iterator[list[BlenderServer]]:
    """A constructor for each list of buckets."""
    blends = open_blends(lake)
    with ExitStack() as stack:
        loaders = [served_loader(blends.open(spec.blend), spec, bucket) for bucket in buckets]
        for loader in loaders:
            stack.callback(loader.close)
        services = [[*blend_services(blends), loading_service(loader, blends)] for loader in loaders]
        yield [stack.enter_context(BlenderServer(some)) for some in services]


def closed_addresses(n: int) -> list[str]:
    return [f"127.0.0.1:{port}" for port in free_ports(n)]


def test_a_rank_asks_from_its_own_place_and_connects_to_few(shared_lake: Settings, blend: str) -> None:
    connected: list[str] = []

    def connect(address: str, **options: Any) -> ConstructorClient:
        connected.append(address)
        return ConstructorClient(address, **options)

    with serving(shared_lake, spec_of(blend), [0], [1], [2], [3]) as servers:
        addresses = [server.address for server in servers]
        for rank in range(RANKS):
            connected.clear()
            constructors = Constructors(addresses, connect, patience_s=5)
            constructors.open()
            assert len(connected) == 1
            assert constructors.of_rank(rank, RANKS, offset=3) == addresses[rank]
            own_and_next = [addresses[rank], addresses[(rank + 1) % RANKS]]
            assert connected[1:] == own_and_next, "it reads from the first and compares plans with the second"
            assert constructors.of_rank(rank, RANKS, offset=9) == addresses[rank]
            assert len(connected) == 3


def test_addresses_that_are_silent_or_serve_others_are_passed_over(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blender.loading.constructors.EACH_S", 0.2)
    with serving(shared_lake, spec_of(blend), [2, 3], [0, 1]) as servers:
        silent = closed_addresses(2)
        addresses = [silent[0], servers[0].address, silent[1], servers[1].address]
        client = LoadingClient(addresses, patience_s=20)
        loading = client.open()
        for rank in range(RANKS):
            assert [step.offset for step in loading.read(StepRange(5, 2), rank)] == [5, 6]
        client.close()


def test_a_rank_that_no_constructor_serves_is_refused_with_those_that_are_silent(
    shared_lake: Settings, blend: str
) -> None:
    with serving(shared_lake, spec_of(blend), [0], [1]) as servers:
        addresses = [server.address for server in servers]
        with pytest.raises(InvalidRequest, match=f"No constructor at {', '.join(addresses)} serves rank 3"):
            list(LoadingClient(addresses, patience_s=1).open().read(StepRange(0, 1), 3))
        (silent,) = closed_addresses(1)
        with pytest.raises(
            BlenderUnavailable,
            match=rf"No constructor that answers serves rank 3; silent: {silent}\. Blender at {silent} does "
            r"not answer .* Start it with `factory loading serve`",
        ):
            list(LoadingClient([*addresses, silent], patience_s=1).open().read(StepRange(0, 1), 3))


@pytest.mark.invariant(
    "A planned step reaches the ranks that its plan names: each row is read once, embedded and served "
    "bytes are equal, and a killed constructor loses and repeats nothing."
)
def test_another_constructor_of_the_bucket_takes_over_where_the_first_one_ended(
    shared_lake: Settings, blend: str
) -> None:
    spec = spec_of(blend)
    with serving(shared_lake, spec, [0, 1], [2, 3], [0, 1]) as servers:
        addresses = [server.address for server in servers]
        client = LoadingClient(addresses, patience_s=20, prefetch_bytes=1)
        loading = client.open()
        steps = loading.read(StepRange(0, 12), 0)
        read = [next(steps) for _ in range(3)]
        for server in servers[:2]:
            server.stop(0)
        read += steps
        assert loading.end() == 37, "it describes the blend too"
        client.close()
    embedded = open_loading(spec, shared_lake)
    undisturbed = list(embedded.read(StepRange(0, 12), 0))
    assert all(one.arrow.equals(other.arrow) for one, other in zip(read, undisturbed, strict=True))
    embedded.close()


def test_without_a_constructor_that_takes_over_the_error_names_the_last_address(
    shared_lake: Settings, blend: str
) -> None:
    with serving(shared_lake, spec_of(blend), [0, 1], [2, 3]) as servers:
        client = LoadingClient([server.address for server in servers], patience_s=0.5, prefetch_bytes=1)
        steps = client.open().read(StepRange(0, 12), 0)
        next(steps)
        servers[0].stop(0)
        with pytest.raises(BlenderUnavailable, match=f"Blender at {servers[0].address} does not answer"):
            list(steps)
        client.close()


def test_a_pickled_handle_reads_from_the_constructor_of_the_rank(shared_lake: Settings, blend: str) -> None:
    with serving(shared_lake, spec_of(blend), [0, 1], [2, 3]) as servers:
        client = LoadingClient([server.address for server in servers])
        loading = client.open()
        list(loading.read(StepRange(0, 1), 3))
        copy = pickle.loads(pickle.dumps(loading))
        assert [step.offset for rank in (0, 3) for step in copy.read(StepRange(4, 1), rank)] == [4, 4]
        client.close()


class Other(ClientPlaceTree):
    """The tree of a machine whose strategy plans otherwise from step 5 on."""


TREE = ClientPlaceTree
"""The tree of the constructor that starts next."""


def tree_of_machine(mesh: Mesh) -> ClientPlaceTree:
    return TREE(mesh)


def other_from_5(step: Any, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    differs = isinstance(tree, Other) and step.offset >= 5
    return plain(step, tree, spec) if differs else llm_balance(step, tree, spec)


@pytest.mark.invariant(
    "The ranks of a run read the buckets of step 0 at every step, and a plan is made in one way: "
    "`run_planner` refuses a strategy that changes its readers or plans a step in two ways, and ranks "
    "compare hashes."
)
def test_plans_of_the_step_at_which_a_run_begins_are_compared(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = {"strategy": f"{__name__}:other_from_5", "tree": f"{__name__}:tree_of_machine"}
    blends, spec, loaders = open_blends(shared_lake), spec_of(blend, **functions), []
    for buckets, tree in (([0, 1], ClientPlaceTree), ([2, 3], Other)):
        monkeypatch.setattr(sys.modules[__name__], "TREE", tree)
        loaders.append(Loader(blends.open(blend), spec, messages, len, buckets=buckets))
    with ExitStack() as stack:
        for loader in loaders:
            stack.callback(loader.close)
        services = [[*blend_services(blends), loading_service(loader, blends)] for loader in loaders]
        addresses = [stack.enter_context(BlenderServer(some)).address for some in services]
        for rank in range(RANKS):
            assert len(list(LoadingClient(addresses).open().read(StepRange(4, 1), rank))) == 1
            with pytest.raises(PlanChanged, match=r"plan step 5 of spec .* differently"):
                list(LoadingClient(addresses).open().read(StepRange(5, 1), rank))


def test_a_constructor_names_its_plan_of_a_step_up_to_the_end(shared_lake: Settings, blend: str) -> None:
    with serving(shared_lake, spec_of(blend), [0]) as (server,), ConstructorClient(server.address) as client:
        (step,) = LoadingClient(server.address).open().read(StepRange(3, 1), 0)
        assert client.spec(3).plan == step.plan
        assert client.spec(0).plan == client.spec().first_plan
        assert not client.spec().HasField("plan")
        assert not client.spec(37).HasField("plan")


def test_a_loader_opens_by_a_spec_or_its_id_and_nothing_else(shared_lake: Settings, blend: str) -> None:
    spec = spec_of(blend)
    with serving(shared_lake, spec, [0]) as (server,):
        client = LoadingClient(server.address)
        assert client.open(spec).spec == client.open(spec.id).spec == client.open().spec == spec.id
        with pytest.raises(InvalidRequest, match=f"loads spec {spec.id}, and this rank reads spec [0-9a-f]+"):
            client.open(spec_of(blend, microbatches=1))
        for other in (3, [spec], Mesh()):
            with pytest.raises(InvalidRequest, match=r"`open` got a \w+\. Give a spec or its id"):
                client.open(other)  # type: ignore[arg-type]
        client.close()


def test_errors_of_a_loading_client_name_its_command(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blender.wire.patience.NOTICE_S", 0.2)
    (address,) = closed_addresses(1)
    client = LoadingClient(address, patience_s=1)
    with pytest.raises(BlenderUnavailable, match=r"Start it with `factory loading serve`, or correct"):
        client.open()
    assert "`factory loading serve` starts one" in caplog.text
    assert "`factory serve`" not in caplog.text


@pytest.mark.parametrize("address", ["10.0.0.5", "host:70000", "a b:1"])
def test_a_malformed_address_is_refused_when_the_client_is_made(address: str) -> None:
    with pytest.raises(InvalidRequest, match="The address"):
        LoadingClient(["127.0.0.1:50052", address])


def test_ranks_of_different_specs_are_refused(shared_lake: Settings, blend: str) -> None:
    with (
        serving(shared_lake, spec_of(blend), [0]) as (one,),
        serving(shared_lake, spec_of(blend, strategy="plain"), [1]) as (other,),
        pytest.raises(InvalidRequest, match=r"load the specs [0-9a-f]{32} and [0-9a-f]{32}\. Give the addr"),
    ):
        list(LoadingClient([one.address, other.address]).open().read(StepRange(0, 1), 2))
