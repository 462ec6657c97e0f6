"""Balance moves rows between ranks and microbatches, and never changes which rows a step has."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidBlend, InvalidRequest
from blender.loading import strategies
from blender.loading.balance import register_balancer
from blender.loading.bin_order import BARRIERS
from blender.loading.costs import Backbone, tokens
from blender.loading.figures import times
from blender.loading.graph import DGraph
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.loading.tree import ClientPlaceTree
from blender.records import Schedule
from blender.spec.mesh import Mesh
from tests.blender.loading.steps import step_of

MODEL = Backbone(hidden=64, layers=2)
FACTS = ("n_tokens", "squared_lengths")
LEVELS = ("inter", "intra", "both")


@st.composite
def meshes_and_rows(draw: st.DrawFn) -> tuple[Mesh, int, list[list[int]]]:
    mesh = Mesh(dp=draw(st.integers(1, 4)), cp=draw(st.integers(1, 2)))
    bins = draw(st.integers(1, 3))
    n = mesh.dp * mesh.cp * bins * draw(st.integers(0, 3))
    rows = st.lists(st.integers(1, 200), min_size=1, max_size=4)
    return mesh, bins, draw(st.lists(rows, min_size=n, max_size=n))


def balanced(
    rows: list[list[int]], mesh: Mesh, bins: int, method: str = "greedybinpacking", **options: Any
) -> Plan:
    graph = DGraph.of(step_of(rows), ClientPlaceTree(mesh), FACTS)
    graph.mix(None)
    graph.distribute(options.pop("axis", "DP"), options.pop("group_size", None))
    graph.cost(MODEL, memory=tokens)
    graph.balance(method, bins=bins, **options)
    return graph.plan()


def conserved(plan: Plan) -> None:
    rows = [plan.rows_of(bucket, bin) for bucket in range(plan.buckets) for bin in range(plan.bins)]
    assert sorted(np.concatenate(rows).tolist()) == list(range(len(plan.step)))
    assert all((np.diff(row) > 0).all() for row in rows)  # the blend's order
    assert int(plan.loads.sum()) == int(plan.costs.sum()) == int(plan.as_given.sum())


@pytest.mark.invariant(
    "A loading plan is a function of its spec and a step, reads no token, and has every row of the step once."
)
@pytest.mark.parametrize("barrier", BARRIERS)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("reorder", [True, False])
@given(drawn=meshes_and_rows(), axis=st.sampled_from(["DP", "CP"]), group_size=st.integers(1, 4))
def test_rows_are_conserved_in_equal_counts(
    barrier: str,
    level: str,
    reorder: bool,
    drawn: tuple[Mesh, int, list[list[int]]],
    axis: str,
    group_size: int,
) -> None:
    mesh, bins, rows = drawn
    plan = balanced(
        rows, mesh, bins, axis=axis, group_size=group_size, level=level, barrier=barrier, reorder=reorder
    )
    conserved(plan)
    counts = [len(plan.rows_of(bucket, bin)) for bucket in range(plan.buckets) for bin in range(bins)]
    assert len(set(counts)) == 1
    if level == "intra":
        assert (plan.bucket == np.arange(len(rows)) * plan.buckets // max(1, len(rows))).all()


@pytest.mark.parametrize("level", ["intra", "both"])
@given(drawn=meshes_and_rows(), limit=st.integers(200, 900))
def test_a_limit_is_kept_or_refused_in_a_sentence(
    level: str, drawn: tuple[Mesh, int, list[list[int]]], limit: int
) -> None:
    mesh, bins, rows = drawn
    try:
        plan = balanced(rows, mesh, bins, level=level, limit=limit, equal_counts=False)
    except InvalidRequest as error:
        refusal = str(error)
    else:
        refusal = ""
        conserved(plan)
        used = np.zeros((plan.buckets, bins), dtype=np.int64)
        np.add.at(used, (plan.bucket, plan.bin), plan.step.facts["n_tokens"].astype(np.int64))
        assert used.max(initial=0) <= limit
    assert not refusal or "limit" in refusal


@pytest.mark.parametrize("method", ["greedybinpacking", "zigzag", "v-shape"])
def test_balance_lowers_the_time_at_its_barrier(method: str) -> None:
    draw = np.random.default_rng(1)
    rows = [[int(n)] for n in draw.lognormal(5, 1, 256)]
    plan = balanced(rows, Mesh(dp=8), 8, method, level="both")
    assert plan.figures["microbatch"].after < 0.6 * plan.figures["microbatch"].before
    assert plan.figures["microbatch"].bound <= plan.figures["microbatch"].after


@pytest.mark.parametrize("level", ["inter", "both"])
@pytest.mark.parametrize("group_size", [1, 2, 5, 8])  # the last of the groups of 5 has two buckets
def test_groups_are_balanced_with_each_other(level: str, group_size: int) -> None:
    draw = np.random.default_rng(7)
    rows = [[int(n)] for n in np.sort(draw.lognormal(5, 1, 32 * 32))]  # neighbors differ most
    options = {"level": level, "barrier": "step", "equal_counts": False}
    plan = balanced(rows, Mesh(dp=32), 2, group_size=group_size, **options)
    at_once = balanced(rows, Mesh(dp=32), 2, level=level, barrier="step", equal_counts=False)
    assert plan.figures["step"].after < 1.02 * at_once.figures["step"].after < 1.2
    assert plan.figures["step"].before > 5
    conserved(plan)


def test_differencing_makes_bins_of_any_count() -> None:
    rows = [[n] for n in (8, 7, 6, 5, 4, 3, 2, 1)]
    plan = balanced(rows, Mesh(dp=2), 2, "karmarkar-karp", level="both", equal_counts=False)
    conserved(plan)
    with pytest.raises(InvalidRequest, match=r"puts . to . rows in a microbatch"):
        balanced([[100], [1], [1], [1]], Mesh(dp=2), 1, "karmarkar-karp")


def test_the_paper_s_v_has_the_costliest_at_both_ends_and_the_hill_in_the_middle() -> None:
    rows = [[n] for n in (10, 20, 30, 40, 50)]
    vee = balanced(rows, Mesh(), 5, "v-shape", level="intra", reorder=False)
    assert [vee.rows_of(0, bin).tolist() for bin in range(5)] == [[4], [2], [0], [1], [3]]
    hill = balanced(rows, Mesh(), 5, level="intra", barrier="pipeline")
    assert [hill.rows_of(0, bin).tolist() for bin in range(5)] == [[0], [2], [4], [3], [1]]


def test_a_balancer_of_ones_own_is_registered_and_checked() -> None:
    @register_balancer("test-first")
    def first(costs: np.ndarray, bins: int) -> np.ndarray:
        return np.arange(len(costs)) % bins

    plan = balanced([[9], [8], [7], [6]], Mesh(), 2, "test-first", level="intra", reorder=False)
    assert plan.rows_of(0, 0).tolist() == [0, 2]
    register_balancer("test-drops")(lambda costs, bins: np.zeros(len(costs) - 1, dtype=int))
    with pytest.raises(InvalidRequest, match=r"`test-drops` returned int64 of shape .3,. for 4 rows"):
        balanced([[1]] * 4, Mesh(), 2, "test-drops")
    register_balancer("test-outside")(lambda costs, bins: np.full(len(costs), bins))
    with pytest.raises(InvalidRequest, match=r"put rows in bins 2 to 2. Use bins 0 to 1"):
        balanced([[1]] * 4, Mesh(), 2, "test-outside", level="intra")


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(InvalidRequest, match=r"There is no balancer `lpt`. Use `greedybinpacking`"):
        balanced([[1], [1]], Mesh(dp=2), 1, "lpt")
    with pytest.raises(
        InvalidRequest, match=r"3 rows, which 2 buckets of 1 microbatches do not share equally"
    ):
        balanced([[1]] * 3, Mesh(dp=2), 1)
    with pytest.raises(
        InvalidRequest, match=r"Row 1 of step 5 .ordinal 1 of source `packed.s0`. takes 9, and a"
    ):
        balanced([[1], [9]], Mesh(dp=2), 1, limit=8)
    with pytest.raises(InvalidRequest, match=r"have no fact `n_patches`"):
        DGraph.of(step_of([[1]]), ClientPlaceTree(Mesh()), ("n_patches",))
    graph = DGraph.of(step_of([[1]]), ClientPlaceTree(Mesh()), FACTS)
    with pytest.raises(InvalidRequest, match=r"Call `distribute` first"):
        graph.balance("greedybinpacking", bins=1)
    with pytest.raises(InvalidRequest, match=r"whole number for each row"):
        graph.cost(lambda facts: np.array([0.5]))
    with pytest.raises(InvalidBlend, match=r"names the unknown source `packed.x`"):
        graph.mix(Schedule(8, ((0, {"packed.x": 1.0}),), "constant"))
    with pytest.raises(InvalidRequest, match=r"does not follow this schedule"):
        graph.mix(Schedule(8, ((0, {"packed.s0": 1.0}),), "constant"))


def test_the_language_strategy_has_the_seven_lines_of_the_paper() -> None:
    body = inspect.getsource(strategies.llm_balance).split('"""')[2].strip().splitlines()
    assert len(body) == 7
    assert [line.split("(")[0].strip().rpartition(" ")[2] for line in body] == [
        "DGraph.of",
        "graph.mix",
        "graph.distribute",
        "graph.cost",
        "graph.balance",
        "graph.broadcast_at",
        "graph.plan",
    ]


def test_strategies_conserve_rows_and_are_found_by_name() -> None:
    draw = np.random.default_rng(2)
    step = step_of([[int(n)] for n in draw.lognormal(5, 1, 64)], sources=3)
    for name in ("llm", "plain", "tests.blender.loading.test_graph:by_hand"):
        spec = LoadingSpec(blend="b", mesh=Mesh(dp=4, tp=2), model=MODEL, microbatches=4, strategy=name)
        plan = strategies.strategy(name)(step, ClientPlaceTree(spec.mesh), spec)
        conserved(plan)
        assert [consumer.rank for consumer in plan.consumers] == [0, 2, 4, 6]
    with pytest.raises(InvalidRequest, match=r"There is no strategy `vllm`. Use `llm`, `vlm`, `dynamic"):
        strategies.strategy("vllm")
    with pytest.raises(InvalidRequest, match=r"cannot be imported"):
        strategies.strategy("tests.blender.loading.nowhere:plan")


def by_hand(step: Any, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    """A strategy of another module."""
    graph = DGraph.of(step, tree, FACTS)
    graph.distribute("DP")
    graph.cost(spec.model)
    graph.balance("zigzag", bins=spec.microbatches, level="intra")
    graph.broadcast_at("TP")
    return graph.plan()


def test_a_graph_names_its_states_and_draws_its_rows() -> None:
    graph = DGraph.of(step_of([[3], [4], [5], [6]], sources=2), ClientPlaceTree(Mesh(dp=2)), FACTS)
    graph.mix(None)
    graph.distribute("DP")
    graph.cost(MODEL)
    graph.balance("greedybinpacking", bins=2)
    assert graph.edges == [
        ("loaded", "sampled", "mix"),
        ("sampled", "distributed", "distribute(DP)"),
        ("distributed", "measured", "cost"),
        ("measured", "balanced", "balance(greedybinpacking)"),
    ]
    mermaid, dot = graph.draw(), graph.draw("dot")
    assert mermaid.startswith("flowchart LR")
    assert dot.startswith("digraph plan {")
    for text in ("packed.s0: 2 rows", "packed.s1: 2 rows", "bucket 1", "microbatch 1: 1 rows", "rank 1"):
        assert text in mermaid
        assert text in dot


def test_several_graphs_share_the_rows_of_a_step() -> None:
    step = step_of([[int(n)] for n in np.random.default_rng(4).lognormal(5, 1, 64)])
    backbone = DGraph.of(step, ClientPlaceTree(Mesh(dp=2, cp=2, tp=2)), FACTS)
    encoder = DGraph.of(step, ClientPlaceTree(Mesh(dp=8)), ("n_tokens",))
    backbone.distribute("DP")
    encoder.distribute("WORLD", group_size=4)
    for graph, model in ((backbone, MODEL), (encoder, tokens)):
        graph.cost(model)
        graph.balance("greedybinpacking", bins=2, level="both")
    conserved(backbone.plan())
    conserved(encoder.plan())
    assert (backbone.plan().buckets, encoder.plan().buckets) == (2, 8)


def test_a_rank_gets_the_bytes_of_its_piece() -> None:
    rows = [[10], [20], [30], [40]]
    plan = balanced(rows, Mesh(pp=3, dp=2, cp=2), 2, level="intra")
    of_rank = {consumer.rank: plan.bytes_of(consumer) for consumer in plan.consumers}
    assert [of_rank[rank] for rank in range(4)] == [60, 60, 140, 140]  # 4 bytes a token, half of each row
    assert [of_rank[rank] for rank in range(4, 8)] == [0] * 4  # the stage in the middle


def test_a_large_plan_is_not_drawn() -> None:
    graph = DGraph.of(step_of([[1]] * 512), ClientPlaceTree(Mesh(dp=512)), FACTS)
    graph.distribute("DP")
    with pytest.raises(InvalidRequest, match=r"512 microbatches, and a picture shows at most 256"):
        graph.draw()


def test_a_plan_of_ones_own_must_place_each_row_once() -> None:
    step = step_of([[1], [2]])
    good = (np.array([0, 1]), np.array([0, 0]))
    costs = np.ones(2, dtype=np.uint64)
    assert times(Plan(step, *good, costs, 2, 1).loads)["step"] == 1
    with pytest.raises(
        InvalidRequest, match=r"gives a bucket to 1 rows, and step 5 has 2. Plan each row once"
    ):
        Plan(step, good[0][:1], good[1], costs, 2, 1)
    with pytest.raises(InvalidRequest, match=r"names a bin 0 or 3"):
        Plan(step, good[0], np.array([0, 3]), costs, 2, 1)
