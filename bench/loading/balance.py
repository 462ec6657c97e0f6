"""What balance is worth: the time of a step at each barrier over that of equal microbatches, from FLOPs.

Packed rows of real files, a row a microbatch, as the blend gives them and by `llm_balance`. Then one pipeline
alone, whose microbatches have drawn costs, in several orders. Nothing here ran on a GPU: times are computed
by `blender.loading.figures` from the cost model.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, at_least, at_most, table
from bench.loading.corpus import PackedRows, file_lengths, packed
from blender.loading.balance import v_shape
from blender.loading.bin_order import BARRIERS, Barrier, ordered
from blender.loading.costs import Backbone, Costs
from blender.loading.figures import times
from blender.loading.graph import DGraph
from blender.loading.plan import Plan
from blender.loading.spec import LoadingSpec
from blender.loading.strategies import llm_balance
from blender.loading.tree import ClientPlaceTree
from blender.spec.mesh import Mesh

ROW_LENGTHS = (8_192, 32_768, 131_072)
HIDDEN, LAYERS = (2_048, 8_192), 32
DATA_PARALLEL = (8, 64)
MICROBATCHES, STAGES = 8, 8
STEPS = 20
AIMED = (32_768, 2_048, 64)
FASTER = 1.3
PIPELINE_MICROBATCHES, SPREAD = 32, 0.3
MOST_OF_HILL = 1.1
DATA = f"`balance`: the Python files of this installation, {MICROBATCHES} microbatches of one packed row"
CAVEATS = (
    f"`balance`: times are computed from FLOPs, none is measured; means of {STEPS} shuffled steps. "
    f"The backbone is causal and has {LAYERS} layers, a pipeline {STAGES} stages. A token is 4 bytes. "
    "`equal sums` balances ranks alone: level `inter`, whose microbatches keep the order of the blend.",
    f"1F1B is simulated: {PIPELINE_MICROBATCHES} microbatches, lognormal costs of spread {SPREAD}.",
)


def measure(progress: Console) -> Report:
    """Plan steps of packed files, then order the microbatches of a pipeline."""
    report = Report(CAVEATS, DATA)
    progress.print("reading the sizes of Python files")
    lengths = file_lengths()
    shown = table(
        f"Time over equal microbatches, as given > planned for the barrier (bound); {len(lengths):,} files",
        "tokens | rows | hidden | dp | step | microbatch | pipeline | equal sums: microbatch | FSDP faster",
    )
    for row_length in ROW_LENGTHS:
        progress.print(f"planning rows of {row_length:,} tokens")
        rows = packed(lengths, row_length)
        report.check(
            f"{row_length:,}: packed rows hold every token of the files, and none is longer",
            int(rows.n_tokens.sum()) == lengths.sum() and int(rows.n_tokens.max()) <= row_length,
        )
        for hidden in HIDDEN:
            for dp in DATA_PARALLEL:
                planned = {barrier: plans(rows, hidden, dp, barrier) for barrier in BARRIERS}
                sums = equal_sums(rows, hidden, dp)
                kept = all(keeps_rows(plan) for steps in [*planned.values(), sums] for plan in steps)
                report.check(f"{row_length:,}, hidden {hidden:,}, dp {dp}: plans keep their rows", kept)
                case = (f"{row_length:,}", f"{len(rows):,}", f"{hidden:,}", f"{dp}")
                shown.add_row(*case, *_cells(planned, sums))
                aimed = (row_length, hidden, dp) == AIMED
                report.rows += _rows(
                    f"loading.balance.{row_length}.{hidden}.{dp}", planned, sums, aimed=aimed
                )
    report.tables.append(shown)
    _add_pipeline(report)
    return report


def equal_sums(rows: PackedRows, hidden: int, dp: int, steps: int = STEPS) -> list[Plan]:
    """Plans that balance ranks and not their microbatches."""
    tree = ClientPlaceTree(Mesh(dp=dp))
    graphs = [
        DGraph.of(rows.step(offset, dp * MICROBATCHES), tree, ("n_tokens", "squared_lengths"))
        for offset in range(steps)
    ]
    for graph in graphs:
        graph.distribute("DP")
        graph.cost(Backbone(hidden, LAYERS))
        graph.balance("greedybinpacking", bins=MICROBATCHES, level="inter", barrier="step")
    return [graph.plan() for graph in graphs]


def plans(rows: PackedRows, hidden: int, dp: int, barrier: Barrier, steps: int = STEPS) -> list[Plan]:
    """Plans of shuffled steps of one row a microbatch, for ranks that meet at `barrier`."""
    mesh = Mesh(dp=dp, pp=STAGES)
    spec = LoadingSpec(
        blend="0" * 32,
        mesh=mesh,
        model=Backbone(hidden, LAYERS),
        microbatches=MICROBATCHES,
        barrier=barrier,
    )
    tree = ClientPlaceTree(mesh)
    return [llm_balance(rows.step(offset, dp * MICROBATCHES), tree, spec) for offset in range(steps)]


def keeps_rows(plan: Plan) -> bool:
    """Whether every microbatch has the cost of one row, each row of the step once."""
    return bool(np.array_equal(np.sort(plan.loads, axis=None), np.sort(plan.costs)))


def order_times(spread: float = SPREAD, draws: int = STEPS) -> dict[str, float]:
    """The time of a pipeline over that of equal microbatches, by the order of lognormal ones."""
    random = np.random.default_rng(0)
    drawn = random.lognormal(0, spread, (draws, PIPELINE_MICROBATCHES))
    costs = (drawn * 1e6).astype(np.uint64)
    return {
        name: mean(times(order(some)[None], STAGES)["pipeline"] for some in costs)
        for name, order in ORDERS.items()
    }


def _v_shape(costs: Costs) -> Costs:
    shaped = np.empty_like(costs)
    shaped[v_shape(costs, len(costs))] = costs
    return shaped


def _hill(costs: Costs) -> Costs:
    shaped = np.empty_like(costs)
    shaped[ordered(costs[None], "pipeline")[0]] = costs
    return shaped


ORDERS: dict[str, Callable[[Costs], Costs]] = {
    "as given": lambda costs: costs,
    "descending": lambda costs: np.sort(costs)[::-1],
    "V, large at both ends": _v_shape,
    "hill, small at both ends": _hill,
    "equal": lambda costs: np.full_like(costs, int(costs.mean())),
}


def _add_pipeline(report: Report) -> None:
    by_order = order_times()
    report.check("a pipeline of equal microbatches takes the time of equal ones", by_order.pop("equal") == 1)
    title = "1F1B: time over equal ones"
    cells = [(name, f"{ratio:.3f}") for name, ratio in by_order.items()]
    report.tables.append(table(title, "order | time", cells))
    ratios = {name.partition(",")[0].replace(" ", "_"): round(ratio, 4) for name, ratio in by_order.items()}
    hill = at_most("loading.pipeline.hill", ratios.pop("hill"), "ratio", MOST_OF_HILL)
    report.rows += [
        *(Row(f"loading.pipeline.{name}", ratio, "ratio") for name, ratio in ratios.items()),
        hill,
    ]


def _mean(plans_of_steps: list[Plan], barrier: Barrier, *, before: bool = False) -> float:
    figures = (plan.figures[barrier] for plan in plans_of_steps)
    return mean(figure.before if before else figure.after for figure in figures)


def _bound(plans_of_steps: list[Plan], barrier: Barrier) -> float:
    return mean(plan.figures[barrier].bound for plan in plans_of_steps)


def _cells(planned: dict[Barrier, list[Plan]], sums: list[Plan]) -> list[str]:
    pairs = [
        f"{_mean(steps, barrier, before=True):.3f} > {_mean(steps, barrier):.3f} "
        f"({_bound(steps, barrier):.3f})"
        for barrier, steps in planned.items()
    ]
    return [*pairs, f"{_mean(sums, 'microbatch'):.3f}", f"{_faster(planned):.2f}x"]


def _faster(planned: dict[Barrier, list[Plan]]) -> float:
    steps = planned["microbatch"]
    return _mean(steps, "microbatch", before=True) / _mean(steps, "microbatch")


def _rows(name: str, planned: dict[Barrier, list[Plan]], sums: list[Plan], *, aimed: bool) -> list[Row]:
    faster, label = round(_faster(planned), 4), f"{name}.fsdp_faster"
    rows = [at_least(label, faster, "ratio", FASTER) if aimed else Row(label, faster, "ratio")]
    for barrier, steps in planned.items():
        rows += [
            Row(f"{name}.{barrier}.as_given", round(_mean(steps, barrier, before=True), 4), "ratio"),
            Row(f"{name}.{barrier}.planned", round(_mean(steps, barrier), 4), "ratio"),
        ]
    bounds = [
        Row(f"{name}.{barrier}.bound", round(_bound(steps, barrier), 4), "ratio")
        for barrier, steps in planned.items()
    ]
    return [
        *rows,
        *bounds,
        Row(f"{name}.microbatch.equal_sums", round(_mean(sums, "microbatch"), 4), "ratio"),
    ]
