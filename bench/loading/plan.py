"""What a plan costs: the CPU time of naming the rows of a step, of their facts and costs, and of the balance.

The cases are those of MegaScale-Data's Table 2: 72 rows a rank on 288 and 1,152 ranks, twice the batch, and
groups of two ranks. A case with eight microbatches a rank is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.harness import Report, Row, at_most, table
from bench.loading import images, tables
from bench.timing import cpu_seconds
from blender.loading import balance
from blender.loading.columns import StepColumns
from blender.loading.cost_index import CostIndex, lengths
from blender.loading.costs import Backbone, tokens
from blender.loading.figures import bounds
from blender.loading.graph import DGraph
from blender.loading.plan import Plan
from blender.loading.planner import Planner
from blender.loading.spec import LoadingSpec
from blender.opened.blend import Blend
from blender.records import ExplainedRow
from blender.spec.config import blend_config
from blender.spec.mesh import Mesh
from blender.spec.mixture import Mixture
from blender.spec.row_order import BlendOrder, Origins

Item = TypeVar("Item")


@dataclass(frozen=True)
class Case:
    """A step of `rows` rows on `ranks` data parallel ranks, and what the paper's planner takes for it."""

    name: str
    rows: int
    ranks: int
    paper_balance_ms: float | None
    paper_cost_ms: float | None = None
    microbatches: int = 1
    group_size: int | None = None

    def spec(self, blend: str) -> LoadingSpec:
        """How the case is planned."""
        return LoadingSpec(
            blend=blend,
            mesh=Mesh(dp=self.ranks),
            model=MODEL,
            microbatches=self.microbatches,
            group_size=self.group_size,
        )


MODEL = Backbone(hidden=4_096, layers=32)
BASE = Case("82944", 82_944, 1_152, 357, 107)
CASES = (
    Case("20736", 20_736, 288, 16),
    Case("41472", 41_472, 288, 27),
    BASE,
    Case("82944.groups", 82_944, 1_152, 195, group_size=2),
    Case("82944.microbatches", 82_944, 1_152, None, microbatches=8),
)
SHUFFLES: tuple[Mapping[str, Any], ...] = (
    {"shuffle": "none"},
    {"shuffle": "row"},
    {"shuffle": "page_window", "page_rows": 8, "window_pages": 1_024},
)
"""Orders whose naming is timed; the blends of the tables have `row`."""
THREADS = (1, 2, 8)
ROUNDS = 9
MOST_NAMING_MS, MOST_BALANCE_MS = 10.0, 10.0
PARTS = ("naming", "facts", "costs", "balance", "plan")
DATA = f"`plan`: packed text in {tables.SOURCES} tables, rows of {tables.LENGTH:,} tokens"
CAVEATS = (
    f"`plan`: CPU time of the process with its threads, best (and median) of {ROUNDS} steps after a first; "
    "aims are for the best. `plan` is `Planner.plan`, the other columns are its parts.",
    "The paper's times are those of its Table 2, on its machines, for images. Rows of packed text differ "
    "less; the lengths of their documents are drawn.",
)


def measure(progress: Console) -> Report:
    """Check the plans of each case, then time their parts."""
    report = Report(CAVEATS, DATA)
    home = tables.written(sorted({case.rows for case in CASES}), progress)
    columns = "rows | ranks | bins | " + " | ".join(PARTS) + " | paper: cost | balance"
    costs = table("CPU ms of a step, best (median)", columns)
    imbalance = table("Cost of the largest microbatch above the mean, %", "rows | as given | planned | bound")
    for case in CASES:
        progress.print(f"planning {case.rows:,} rows for {case.ranks:,} ranks ({case.name})")
        blend = tables.blend_of(home, case.rows)
        planner = Planner(blend, case.spec(blend.id))
        plan = check(report, case.name, blend, planner)
        cpu_ms = parts_ms(blend, planner)
        paper = ("" if ms is None else f"{ms:g}" for ms in (case.paper_cost_ms, case.paper_balance_ms))
        shown = (f"{min(cpu_ms[part]):.2f} ({median(cpu_ms[part]):.2f})" for part in PARTS)
        costs.add_row(_name(case), f"{case.ranks:,}", f"{plan.buckets * plan.bins:,}", *shown, *paper)
        above = [100 * excess for excess in excesses(plan)]
        imbalance.add_row(_name(case), *(f"{percent:.3f}" for percent in above))
        report.rows += _rows(case, {part: min(cpu_ms[part]) for part in PARTS}, above)
        if case is BASE:
            naming = _add_naming(report, blend)
    report.tables += [costs, naming, imbalance]
    images.add_balance(report)
    return report


def reshuffled(blend: Blend, shuffle: Mapping[str, Any]) -> BlendOrder:
    """The order of a blend as if its sources had another shuffle."""
    sources = [replace(source.config, **shuffle) for source in blend.order.sources]
    config = blend_config(sources, seed=blend.config.seed)
    n_rows = [source.n_rows for source in blend.order.sources]
    return BlendOrder(config, Mixture([config.piece]), n_rows)


def check(report: Report, name: str, blend: Blend, planner: Planner) -> Plan:
    """Check a plan of `blend` and return it; raises WrongAnswer."""
    plan = planner.plan(0)
    planned = np.concatenate(
        [rows for bucket in range(plan.buckets) for rows in plan.constructor_do_plan(bucket)]
    )
    origins = blend.order.origins(blend.order.row_numbers(0))
    same = np.array_equal(plan.step.source, origins.source) and np.array_equal(
        plan.step.ordinal, origins.ordinal
    )
    whole = np.array_equal(np.sort(planned), np.arange(len(plan.step)))
    report.check(f"{name}: each row of the step is in one microbatch", same and whole)
    hashes = set()
    for threads in THREADS:
        with _threads(threads):
            hashes.add(planner.plan(0).hash)
    counts = ", ".join(map(str, THREADS))
    report.check(f"{name}: plans have one hash on {counts} threads", hashes == {plan.hash})
    report.check(
        f"{name}: costs come from the segments that `explain` names", explained(plan.step, blend.explain(0))
    )
    return plan


def parts_ms(blend: Blend, planner: Planner, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """The CPU milliseconds of each part, for steps 1 to `rounds`."""
    order, spec, offsets = blend.order, planner.spec, range(rounds + 1)
    indexes = [CostIndex(source.reader) for source in blend.sources]
    origins = [order.origins(order.row_numbers(offset)) for offset in offsets]
    graphs = [_distributed(planner, offset) for offset in offsets]
    return {
        "naming": _cpu_ms(offsets, partial(_name_rows, order)),
        "facts": _cpu_ms(origins, lambda rows: lengths(indexes, rows)),
        "costs": _cpu_ms(graphs, lambda graph: graph.cost(spec.model, memory=tokens)),
        "balance": _cpu_ms(
            graphs, lambda graph: graph.balance("greedybinpacking", level="both", **spec.balancing)
        ),
        "plan": _cpu_ms(offsets, planner.plan),
    }


def excesses(plan: Plan) -> tuple[float, float, float]:
    """The largest microbatch over the mean, less 1: as given, as planned, and the least possible."""
    given, planned = (float(loads.max() / loads.mean()) - 1 for loads in (plan.as_given, plan.loads))
    least = bounds(plan.costs, plan.buckets * plan.bins, 1, equal_counts=plan.equal_counts)
    return given, planned, least["step"] - 1


def _add_naming(report: Report, blend: Blend) -> Table:
    """Time the naming of the rows of `BASE` under each shuffle."""
    shown = table(f"CPU ms of naming {BASE.rows:,} rows by shuffle, best (median)", "shuffle | naming")
    for shuffle in SHUFFLES:
        order, name = reshuffled(blend, shuffle), shuffle["shuffle"]
        if name == blend.order.sources[0].config.shuffle:
            rows = blend.order.row_numbers(1)
            same = np.array_equal(order.origins(rows), blend.order.origins(rows))
            report.check(f"shuffle `{name}` names the rows of the blend", same)
        cpu_ms = _cpu_ms(range(ROUNDS + 1), partial(_name_rows, order))
        shown.add_row(name, f"{min(cpu_ms):.2f} ({median(cpu_ms):.2f})")
        report.rows.append(Row(f"loading.plan.{BASE.name}.naming.{name}", round(min(cpu_ms), 3), "ms"))
    return shown


def _name_rows(order: BlendOrder, offset: int) -> Origins:
    return order.origins(order.row_numbers(offset))


def _distributed(planner: Planner, offset: int) -> DGraph:
    graph = DGraph.of(planner.summary_buffer(offset), planner.tree, ("n_tokens", "squared_lengths"))
    graph.distribute("DP", planner.spec.group_size)
    return graph


def _cpu_ms(items: Iterable[Item], work: Callable[[Item], object]) -> list[float]:
    """The CPU milliseconds of `work` for each item after the first, which warms up."""
    return [1e3 * cpu_seconds(partial(work, item), 1)[0] for item in items][1:]


def explained(step: StepColumns, rows: list[ExplainedRow]) -> bool:
    """Whether the facts of a step are those of the segments of `rows`."""
    segments = [[segment.length for segment in row.segments] for row in rows]
    expected = {
        "n_tokens": [sum(row) for row in segments],
        "squared_lengths": [sum(length**2 for length in row) for row in segments],
    }
    return all(step.facts[name].tolist() == values for name, values in expected.items())


@contextmanager
def _threads(threads: int) -> Iterator[None]:
    before = balance.THREADS
    balance.THREADS = threads
    try:
        yield
    finally:
        balance.THREADS = before


def _name(case: Case) -> str:
    extra = f", groups of {case.group_size}" if case.group_size else ""
    return f"{case.rows:,}{extra}" + (f", {case.microbatches} microbatches" if case.microbatches > 1 else "")


def _rows(case: Case, best_ms: dict[str, float], above: list[float]) -> list[Row]:
    name = f"loading.plan.{case.name}"
    rows = [Row(f"{name}.{part}", round(ms, 3), "ms") for part, ms in best_ms.items()]
    if case is BASE:
        both = best_ms["costs"] + best_ms["balance"]
        rows[0] = at_most(f"{name}.naming", round(best_ms["naming"], 3), "ms", MOST_NAMING_MS)
        rows.append(at_most(f"{name}.costs_and_balance", round(both, 3), "ms", MOST_BALANCE_MS))
    labels = ("as_given", "planned", "bound")
    return rows + [
        Row(f"{name}.imbalance.{label}", round(percent, 4), "%")
        for label, percent in zip(labels, above, strict=True)
    ]
