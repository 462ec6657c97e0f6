"""A strategy that is not a pure function of the step, or changes its readers, is refused in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blender.catalog.blends import Blends, open_blends
from blender.errors import InvalidStrategy
from blender.loading.client import LoadingClient
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.graph import DGraph
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.run_planner import TWICE, RunPlanner
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import plain
from blender.loading.tree import ClientPlaceTree, Level
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """48 rows in a step."""
    return open_blends(shared_lake).create([Source(CODE, 48, oversample=True)], seed=7).id


def spec_of(blend: str, strategy: str) -> LoadingSpec:
    return LoadingSpec(
        blend=blend,
        mesh=Mesh(dp=2, tp=2),
        model=Backbone(16, 2),
        microbatches=2,
        strategy=f"{__name__}:{strategy}",
        broadcast=(),
    )


def on_level(step: Any, tree: ClientPlaceTree, spec: LoadingSpec, level: Level, *broadcasts: str) -> Plan:
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute(level)
    graph.cost(spec.model)
    graph.fill(**spec.balancing)
    graph.broadcast_at(*broadcasts)
    return graph.plan()


def by_turns(step: Any, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """Each data parallel index reads at even steps, each rank at odd ones."""
    return on_level(step, tree, spec, "DP" if step.offset % 2 == 0 else "WORLD")


def broadcast_later(step: Any, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """From step 2 on one rank reads for two."""
    return on_level(step, tree, spec, "DP", *(["tp"] if step.offset >= 2 else []))


def random_from_30(step: Any, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """The rows as given up to step 29, then in any order."""
    plan = plain(step, tree, spec)
    if step.offset < 30:
        return plan
    order = np.random.default_rng().permutation(len(step))
    bucket, bin = plan.bucket[order], plan.bin[order]
    return Plan(step, bucket, bin, plan.costs, plan.buckets, plan.bins, plan.consumers)


def planner_of(blends: Blends, blend: str, strategy: str) -> RunPlanner:
    return RunPlanner(Planner(blends.open(blend), spec_of(blend, strategy)))


def test_another_level_than_that_of_step_0_is_refused(shared_lake: Settings, blend: str) -> None:
    planner = planner_of(open_blends(shared_lake), blend, "by_turns")
    assert planner.plan(4).hash == planner.plan(4).hash
    with pytest.raises(
        InvalidStrategy,
        match=r"plans step 5 for 4 buckets \(level `WORLD`\) and 4 readers, and step 0 for 2 buckets "
        r"\(level `DP` or `CP`\) and 4 readers\. .* distribute all steps over one level",
    ):
        planner.plan(5)


def test_other_readers_of_the_same_buckets_are_refused(shared_lake: Settings, blend: str) -> None:
    planner = planner_of(open_blends(shared_lake), blend, "broadcast_later")
    assert planner.plan(1).buckets == 2
    with pytest.raises(InvalidStrategy, match=r"2 buckets .* 2 readers, and step 0 for 2 .* and 4 readers"):
        planner.plan(2)


@pytest.mark.invariant(
    "The ranks of a run read the buckets of step 0 at every step, and a plan is made in one way: "
    "`run_planner` refuses a strategy that changes its readers or plans a step in two ways, and ranks "
    "compare hashes."
)
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_ranks_get_the_refusal_from_a_service_and_in_their_process(
    shared_lake: Settings, blend: str, offset: int
) -> None:
    blends, spec = open_blends(shared_lake), spec_of(blend, "by_turns")
    loader = served_loader(blends.open(blend), spec)
    embedded = open_loading(spec, shared_lake)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        client = LoadingClient(server.address, timeout_s=10)
        for loading in (client.open(), embedded):
            for rank in range(4):
                steps = loading.read(StepRange(offset, 4), rank)
                if offset % 2 == 0:
                    assert len(next(steps)) == 24
                with pytest.raises(InvalidStrategy, match=rf"plans step {offset | 1} for 4 buckets"):
                    next(steps)
        client.close()
    embedded.close()
    loader.close()


@pytest.mark.invariant(
    "The ranks of a run read the buckets of step 0 at every step, and a plan is made in one way: "
    "`run_planner` refuses a strategy that changes its readers or plans a step in two ways, and ranks "
    "compare hashes."
)
def test_a_random_plan_among_the_first_of_a_run_is_refused_wherever_it_begins(
    shared_lake: Settings, blend: str
) -> None:
    blends = open_blends(shared_lake)
    planner = planner_of(blends, blend, "random_from_30")
    for offset in range(28, 30):
        planner.plan(offset)
    with pytest.raises(
        InvalidStrategy, match=r":random_from_30` made two plans of step 30\. .* no random numbers, clock"
    ):
        planner.plan(30)


def test_plans_are_made_twice_at_the_begin_of_a_run_alone(
    shared_lake: Settings, blend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[int] = []
    plan = Planner.plan

    def noting(self: Planner, offset: int) -> Plan:
        planned.append(offset)
        return plan(self, offset)

    monkeypatch.setattr(Planner, "plan", noting)
    planner = planner_of(open_blends(shared_lake), blend, "by_turns")
    for offset in range(100, 100 + 4 * TWICE, 2):
        planner.plan(offset)
    assert [planned.count(offset) for offset in sorted(set(planned))] == [2] * (1 + TWICE) + [1] * TWICE
    assert min(planned) == 0
