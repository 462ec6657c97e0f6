"""A plan is never slower than the rows as given, keeps a limit that they keep, and fails without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.loading.balance import register_balancer
from blender.loading.bin_order import BARRIERS, Barrier
from blender.loading.columns import StepColumns
from blender.loading.costs import Columns, Costs
from blender.loading.graph import DGraph
from blender.loading.placement import Grid, Moves, as_given, sums_as_given
from blender.loading.plan import Plan
from blender.loading.tree import ClientPlaceTree
from blender.spec.mesh import Mesh

METHODS = ("greedybinpacking", "karmarkar-karp", "zigzag", "v-shape")
LEVELS: tuple[Moves, ...] = ("inter", "intra", "both")


def step_of_costs(costs: list[int], memory: list[int] | None = None) -> StepColumns:
    """A step of two sources whose rows have these costs."""
    n = len(costs)
    facts = {
        "n_tokens": np.array(memory or costs, dtype=np.uint64),
        "cost": np.array(costs, dtype=np.uint64),
    }
    return StepColumns(
        "0" * 32, 5, ("packed.a", "packed.b"), np.arange(n) % 2, *[np.arange(n) // 2] * 2, facts
    )


def cost(facts: Columns) -> Costs:
    return facts["cost"]


def memory(facts: Columns) -> Costs:
    return facts["n_tokens"]


def graph_of(step: StepColumns, mesh: Mesh, group_size: int | None = None) -> DGraph:
    graph = DGraph.of(step, ClientPlaceTree(mesh), ("n_tokens", "cost"))
    graph.distribute("DP", group_size)
    graph.cost(cost, memory=memory)
    return graph


def tokens_of_bins(plan: Plan) -> list[list[int]]:
    return plan.sums_of(plan.step.facts["n_tokens"]).tolist()  # type: ignore[no-any-return]


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    dp, bins, equal_counts = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.booleans())
    n = dp * bins * draw(st.integers(1, 4)) if equal_counts else draw(st.integers(0, 40))
    largest = draw(st.sampled_from([2, 10, 10**6, 2**53]))
    return {
        "costs": draw(st.lists(st.integers(0, largest), min_size=n, max_size=n)),
        "memory": draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)),
        "mesh": Mesh(dp=dp, pp=draw(st.sampled_from([1, 2, 4]))),
        "group_size": draw(st.none() | st.integers(1, 4)),
        "bins": bins,
        "equal_counts": equal_counts,
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("barrier", BARRIERS)
@given(drawn=steps(), level=st.sampled_from(LEVELS))
def test_no_plan_is_slower_at_its_barrier_than_the_rows_as_given(
    barrier: Barrier, method: str, drawn: dict[str, Any], level: Moves
) -> None:
    graph = graph_of(step_of_costs(drawn["costs"]), drawn["mesh"], drawn["group_size"])
    equal_counts = drawn["equal_counts"]
    try:
        graph.balance(method, bins=drawn["bins"], level=level, barrier=barrier, equal_counts=equal_counts)
    except InvalidRequest as error:
        refusal = str(error)
    else:
        refusal = ""
        figure = graph.plan().figures[barrier]
        assert figure.after <= figure.before * (1 + 1e-12)
        assert figure.bound <= figure.after * (1 + 1e-9)
    assert not refusal or "rows in a microbatch" in refusal  # of a method that gives no equal counts


@pytest.mark.parametrize("method", METHODS)
@given(drawn=steps(), level=st.sampled_from(LEVELS), barrier=st.sampled_from(BARRIERS))
def test_a_limit_that_the_rows_as_given_keep_is_never_refused(
    method: str, drawn: dict[str, Any], level: Moves, barrier: Barrier
) -> None:
    step, mesh, bins = step_of_costs(drawn["costs"], drawn["memory"]), drawn["mesh"], drawn["bins"]
    limit = int(sums_as_given(step.facts["n_tokens"], mesh.dp, bins).max(initial=0))
    graph = graph_of(step, mesh, drawn["group_size"])
    try:
        graph.balance(
            method, bins=bins, level=level, barrier=barrier, equal_counts=drawn["equal_counts"], limit=limit
        )
    except InvalidRequest as error:
        refusal = str(error)
    else:
        refusal = ""
        plan = graph.plan()
        assert max(map(max, tokens_of_bins(plan))) <= limit
    assert not refusal or "rows in a microbatch" in refusal


def test_rows_as_given_stay_where_the_longest_first_is_slower() -> None:
    graph = graph_of(step_of_costs([3, 3, 0, 2, 2, 2]), Mesh(dp=2))
    graph.balance("greedybinpacking", bins=1, level="both", equal_counts=False)
    assert graph.plan().bucket.tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.plan().figures["microbatch"].after == 1


def test_without_reorder_rows_stand_as_the_method_puts_them() -> None:
    graph = graph_of(step_of_costs([3, 3, 0, 2, 2, 2]), Mesh(dp=2))
    graph.balance("greedybinpacking", bins=1, level="both", equal_counts=False, reorder=False)
    assert graph.plan().figures["microbatch"].after > 1


@given(st.integers(0, 50), st.integers(1, 5), st.integers(1, 5))
def test_rows_as_given_are_shares_in_the_order_of_the_blend(n_rows: int, buckets: int, bins: int) -> None:
    grid = Grid(buckets, bins)
    placement = as_given(n_rows, grid)
    place = np.arange(n_rows) * grid.size // max(1, n_rows)
    assert (placement.bucket * bins + placement.bin).tolist() == place.tolist()
    assert placement.bucket.tolist() == (np.arange(n_rows) * buckets // max(1, n_rows)).tolist()
    values = np.arange(n_rows).astype(np.uint64) ** 2
    expected = np.bincount(place, weights=values.astype(float), minlength=grid.size)
    assert sums_as_given(values, buckets, bins).reshape(-1).tolist() == expected.tolist()


def test_a_row_without_room_is_named_by_its_source_with_the_options_that_help() -> None:
    n = [1] * 8 + [
        7,
        7,
        7,
        7,
    ]  # three of four large rows are in the group of two buckets, each with room for one
    graph = graph_of(step_of_costs(n), Mesh(dp=3), group_size=2)
    with pytest.raises(
        InvalidRequest,
        match=r"^Row 11 of step 5 .ordinal 5 of source `packed.b`. takes 7, and no microbatch of its group "
        r"has room for it below the limit of 12\. Raise `limit`, plan more `microbatches`, or allow "
        r"different numbers of rows .`equal_counts=False`, `--ragged`.\.$",
    ):
        graph.balance("greedybinpacking", bins=1, level="both", limit=12)
    with pytest.raises(InvalidRequest, match=r"plan more `microbatches`\.$"):
        graph.balance("greedybinpacking", bins=1, level="both", limit=12, equal_counts=False)


def test_a_balance_that_fails_leaves_the_graph_as_it_was() -> None:
    register_balancer("test-halves")(lambda costs, bins: np.zeros(len(costs), dtype=int))
    graph = graph_of(step_of_costs([5, 4, 3, 2]), Mesh(dp=2))
    before = graph.plan()
    failures: list[tuple[str, dict[str, Any]]] = [
        ("test-halves", {"bins": 2, "barrier": "step"}),
        ("greedybinpacking", {"bins": 3, "barrier": "step"}),
        ("greedybinpacking", {"bins": 1, "barrier": "step", "limit": 6, "level": "intra"}),
        ("nowhere", {"bins": 2, "barrier": "pipeline", "equal_counts": False}),
    ]
    for method, options in failures:
        with pytest.raises(InvalidRequest):
            graph.balance(method, **options)
        after = graph.plan()
        assert (after.bins, after.barrier, after.equal_counts) == (1, "microbatch", True)
        assert after.hash == before.hash
    assert graph.states == ["loaded", "distributed", "measured"]
    with pytest.raises(InvalidRequest):
        graph.fill(bins=3)
    assert graph.plan().hash == before.hash


@pytest.mark.parametrize("place", ["balance", "fill"])
def test_rows_in_microbatches_are_not_distributed_again(place: str) -> None:
    graph = graph_of(step_of_costs([5, 4, 3, 2]), Mesh(dp=2))
    if place == "fill":
        graph.fill(bins=2)
    else:
        graph.balance("greedybinpacking", bins=2)
    planned = graph.plan().hash
    with pytest.raises(InvalidRequest, match=r"in microbatches already\. Call `distribute` before `balance`"):
        graph.distribute("WORLD")
    assert graph.plan().hash == planned


def test_a_fill_keeps_the_limit_the_barrier_and_the_counts_that_are_asked_for() -> None:
    graph = graph_of(step_of_costs([5, 4, 3, 2, 1]), Mesh(dp=2))
    with pytest.raises(InvalidRequest, match="5 rows, which 2 buckets of 1 microbatches do not"):
        graph.fill(bins=1)
    with pytest.raises(
        InvalidRequest,
        match=r"The rows of step 5 as given fill a microbatch with 12, and it may hold 11. Balance .*`llm`",
    ):
        graph.fill(bins=1, equal_counts=False, limit=11)
    graph.fill(bins=1, equal_counts=False, limit=12, barrier="step")
    plan = graph.plan()
    assert tokens_of_bins(plan) == [[12], [3]]
    assert (plan.barrier, plan.equal_counts) == ("step", False)
    assert all(figure.before == figure.after for figure in plan.figures.values())


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"bins": 2.0}, "`bins` is 2.0. Give a whole number, 1 or more"),
        ({"bins": 0}, "`bins` is 0"),
        ({"bins": None}, "`bins` is None"),
        ({"bins": 2, "limit": 1.5}, "`limit` is 1.5"),
        ({"bins": 2, "limit": -1}, "`limit` is -1"),
        ({"bins": 2, "limit": 2**64}, "`limit` is 18446744073709551616"),
        ({"bins": 2, "barrier": "epoch"}, "`epoch` is not a barrier. Use step, microbatch, pipeline"),
        ({"bins": 2, "level": "outer"}, "`outer` is not a level of balance"),
        ({"bins": 1 << 24}, "2 buckets of 16,777,216 microbatches are more than 16,777,216 in a step"),
    ],
)
def test_wrong_options_of_a_balance_are_named(options: dict[str, Any], sentence: str) -> None:
    graph = graph_of(step_of_costs([5, 4, 3, 2]), Mesh(dp=2))
    with pytest.raises(InvalidRequest, match=sentence):
        graph.balance("greedybinpacking", **{"equal_counts": False, **options})


def test_a_large_limit_is_no_limit() -> None:
    graph = graph_of(step_of_costs([5, 4, 3, 2]), Mesh(dp=2))
    graph.balance("greedybinpacking", bins=2, level="inter", limit=2**63 - 1)
    assert graph.states[-1] == "balanced"


def test_a_method_is_a_name() -> None:
    graph = graph_of(step_of_costs([5, 4, 3, 2]), Mesh(dp=2))
    with pytest.raises(InvalidRequest, match="There is no balancer"):
        graph.balance(["greedybinpacking"], bins=2)  # type: ignore[arg-type]


def test_a_pipeline_that_is_simulated_for_minutes_is_refused() -> None:
    graph = graph_of(step_of_costs([1]), Mesh(pp=1 << 10))
    with pytest.raises(InvalidRequest, match=r"1,024 stages with 65 microbatches make 66,560 passes"):
        graph.balance("greedybinpacking", bins=65, equal_counts=False)


def test_wrong_cost_functions_are_refused_with_their_cause() -> None:
    graph = graph_of(step_of_costs([5, 4]), Mesh())
    before = graph.costs
    with pytest.raises(
        InvalidRequest, match="reads the fact `n_patches`, and the graph has `n_tokens`, `cost`"
    ):
        graph.cost(lambda facts: facts["n_patches"])
    with pytest.raises(InvalidRequest, match=r"failed on step 5 .ZeroDivisionError: .*Correct it") as refusal:
        graph.cost(lambda facts: facts["cost"] // (1 // 0))
    assert isinstance(refusal.value.__cause__, ZeroDivisionError)
    with pytest.raises(InvalidRequest, match=r"rows of step 5 have no cost function"):
        graph.cost(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match=r"failed on step 5 .ValueError"):
        graph.cost(lambda facts: facts["cost"].fill(1))  # the facts of a step are read-only
    with pytest.raises(InvalidRequest, match=r"costs of step 5 sum to 1.8e\+19, and are exact below"):
        graph.cost(lambda facts: facts["cost"] * 0 + np.uint64(2**63))
    with pytest.raises(InvalidRequest, match="whole number for each row"):
        graph.cost(cost, memory=lambda facts: facts["cost"] / 2)
    assert graph.costs is before


@pytest.mark.parametrize("group_size", [0, -1, 1.5, "2"])
def test_a_group_is_a_whole_number_of_buckets(group_size: Any) -> None:
    with pytest.raises(InvalidRequest, match="`group_size` is"):
        graph_of(step_of_costs([5, 4]), Mesh(), group_size)


def test_a_mixture_is_a_schedule() -> None:
    with pytest.raises(InvalidRequest, match="`mix` got a dict"):
        graph_of(step_of_costs([5, 4]), Mesh()).mix({"packed.a": 1.0})  # type: ignore[arg-type]


def test_a_broadcast_is_text() -> None:
    with pytest.raises(InvalidRequest, match="Unknown broadcast `3`"):
        graph_of(step_of_costs([5, 4]), Mesh()).broadcast_at(3)  # type: ignore[arg-type]
