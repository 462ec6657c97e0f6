"""Long rows are cut for many context parallel ranks and short ones for few, each token once on a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.catalog.blends import Blends
from blender.errors import InvalidRequest, InvalidStrategy
from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, tokens
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.rank_groups import WidthGraph
from blender.loading.run_planner import RunPlanner
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import dynamic_cp
from blender.loading.tree import ClientPlaceTree
from blender.records import Source
from blender.spec.mesh import Mesh
from tests.blender.lakes import CODE, PROSE
from tests.blender.loading.steps import step_of

MODEL = Backbone(hidden=64, layers=2)


def spec_of(**fields: Any) -> LoadingSpec:
    options = {"blend": "b", "mesh": Mesh(dp=2, cp=4), "model": MODEL, "equal_counts": False}
    return LoadingSpec(**options | {"strategy": "dynamic_cp"} | fields)


def plan_of(step: StepColumns, spec: LoadingSpec) -> Plan:
    return dynamic_cp(step, ClientPlaceTree(spec.mesh), spec)


@st.composite
def steps_and_specs(draw: st.DrawFn) -> tuple[StepColumns, LoadingSpec]:
    mesh = Mesh(
        pp=draw(st.integers(1, 2)),
        dp=draw(st.integers(1, 3)),
        cp=draw(st.sampled_from([1, 2, 3, 4, 6, 8])),
        tp=draw(st.integers(1, 2)),
    )
    lengths = st.integers(1, 400) | st.integers(1, 8)
    rows = draw(st.lists(st.lists(lengths, min_size=1, max_size=3), min_size=1, max_size=30))
    limit = draw(st.none() | st.integers(50, 900))
    return step_of(rows), spec_of(mesh=mesh, microbatches=draw(st.integers(1, 3)), limit=limit)


@pytest.mark.invariant(
    "Dynamic context parallelism has each token of a step once on the ranks of a node, below their limit."
)
@given(step_and_spec=steps_and_specs())
def test_each_token_is_once_on_neighboring_ranks_below_the_limit(
    step_and_spec: tuple[StepColumns, LoadingSpec],
) -> None:
    step, spec = step_and_spec
    try:
        plan = plan_of(step, spec)
    except InvalidRequest as error:
        refusal = str(error)
    else:
        refusal = ""
        require_whole_rows_on_neighbors(plan, step, spec)
    assert not refusal or (spec.limit is not None and "limit" in refusal)


def require_whole_rows_on_neighbors(plan: Plan, step: StepColumns, spec: LoadingSpec) -> None:
    assert plan.groups is not None
    mesh, widths = spec.mesh, plan.groups.widths
    assert sum(widths) == mesh.dp * mesh.cp
    rows = np.concatenate([plan.rows_of_bucket(bucket) for bucket in range(plan.buckets)])
    assert sorted(rows.tolist()) == list(range(len(step)))
    for bucket, width in enumerate(widths):
        assert width & (width - 1) == 0
        for stage in range(mesh.pp):
            readers = [
                reader
                for reader in plan.consumers
                if reader.bucket == bucket and mesh.coordinate(reader.rank).pp == stage
            ]
            assert sorted(reader.piece for reader in readers) == list(range(width))
            assert {reader.pieces for reader in readers} == {width}
            places = [mesh.coordinate(reader.rank) for reader in readers]
            assert len({place.dp for place in places}) == 1
            first = min(place.cp for place in places)
            assert sorted(place.cp for place in places) == list(range(first, first + width))
            assert first % width == 0
    assert len({reader.rank for reader in plan.consumers}) == len(plan.consumers)
    if spec.limit is not None:
        n_tokens = plan.sums_of(step.facts["n_tokens"])
        assert (n_tokens <= spec.limit * np.array(widths, dtype=np.uint64)[:, None]).all()


def long_and_short(seed: int = 1) -> StepColumns:
    draws = np.random.default_rng(seed)
    return step_of([[4_096], [3_000]] + [[int(n)] for n in draws.integers(20, 200, 400)])


def test_long_rows_get_more_ranks_than_short_ones() -> None:
    step = long_and_short()
    plan = plan_of(step, spec_of(mesh=Mesh(dp=4, cp=8)))
    assert plan.groups is not None
    widths = np.array(plan.groups.widths)[plan.bucket]
    assert widths[:2].tolist() == [8, 8]
    assert np.median(widths[2:]) == 1
    figures = plan.figures["step"]
    assert figures.bound <= figures.after < 1.01 * figures.bound < 0.6 * figures.before


def test_readers_belong_to_the_plan_of_each_step() -> None:
    mesh = Mesh(dp=2, cp=4)
    even = plan_of(step_of([[100]] * 32), spec_of(mesh=mesh))
    of_long_rows = plan_of(long_and_short(), spec_of(mesh=mesh))
    assert even.groups != of_long_rows.groups
    assert {reader.rank for reader in even.consumers} == {reader.rank for reader in of_long_rows.consumers}
    assert even.hash != of_long_rows.hash


def test_a_limit_cuts_rows_that_cost_little() -> None:
    step = step_of([[60]] + [[10]] * 60)
    plan = plan_of(step, spec_of(mesh=Mesh(dp=4, cp=4), limit=50, microbatches=2))
    assert plan.groups is not None
    assert plan.groups.widths[plan.bucket[0]] >= 2
    with pytest.raises(InvalidRequest, match=r"Row 0 of step 5 .* takes 60, and 4 ranks may hold 14 each"):
        plan_of(step, spec_of(mesh=Mesh(dp=4, cp=4), limit=14))


def test_bad_input_is_refused_in_a_sentence() -> None:
    step, tree = long_and_short(), ClientPlaceTree(Mesh(dp=2, cp=4))
    with pytest.raises(InvalidRequest, match=r"not filled by `zigzag`"):
        WidthGraph.of(step, tree, ()).balance("zigzag", bins=1)
    with pytest.raises(InvalidRequest, match=r"set `equal_counts=False`"):
        plan_of(step, spec_of(equal_counts=True))
    graph = WidthGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(MODEL, memory=tokens)
    with pytest.raises(InvalidRequest, match=r"Call `distribute\(.CP.\)`"):
        graph.balance("greedybinpacking", bins=1)


def test_planners_make_such_plans_and_loaders_refuse_them(blends: Blends) -> None:
    blend = blends.open(blends.create([Source(CODE, 12), Source(PROSE, 20)]).id)
    planner = Planner(blend, spec_of(blend=blend.id, microbatches=2, limit=64))
    plan = planner.plan(1)
    assert plan.described()["hash"] == f"{Planner(blend, planner.spec).plan(1).hash:016x}"
    with pytest.raises(InvalidStrategy, match=r"`dynamic_cp` groups ranks anew at every step, and loaders"):
        RunPlanner(planner)
