"""Images of drawn sizes, the items of MegaScale-Data's Table 2: the CPU time and the result of balance alone.

Sizes in patches are lognormal, cut at the largest image, and costs those of a vision encoder of two billion
parameters. Unlike packed rows, the bins of images need not hold equal numbers of them.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np

from bench.harness import Report, Row, at_most, table
from bench.timing import cpu_seconds
from blender.loading.costs import Costs, Encoder, sums
from blender.loading.figures import bounds
from blender.loading.placement import Balance, Grid, as_given

ENCODER = Encoder(hidden=1_664, layers=48)
MEAN_LOG, SIGMA_LOG = 6.2, 1.2
LEAST_PATCHES, MOST_PATCHES = 64, 16_384
CASES = ((20_736, 288, None), (41_472, 288, None), (82_944, 1_152, None), (82_944, 1_152, 2))
"""Images, bins, and neighboring bins that are balanced as one."""
MOST_ABOVE_IN_GROUPS = 1.0  # percent: groups are balanced with each other
ROUNDS = 9


def drawn_costs(n: int, seed: int = 0) -> Costs:
    """The costs of `n` images."""
    patches = np.random.default_rng(seed).lognormal(MEAN_LOG, SIGMA_LOG, n)
    return ENCODER({"n_patches": np.clip(patches, LEAST_PATCHES, MOST_PATCHES).astype(np.uint64)})


def placed(costs: Costs, bins: int, group: int | None = None) -> np.ndarray:
    """The bin of each image; groups of `group` neighboring bins are balanced as one, then their bins."""
    grid = Grid(bins, 1, group or bins)
    given = as_given(len(costs), grid).bucket
    balance = Balance(grid, "greedybinpacking", costs, equal_counts=False)
    return balance.place(given, "both", reorder=False).bucket


def add_balance(report: Report) -> None:
    """Balance the images of each case."""
    columns = "images | bins | balance, CPU ms | as given, % | planned, % | bound, %"
    shown = table("Images of drawn sizes: CPU ms, and cost of the largest bin above the mean", columns)
    for n, bins, group in CASES:
        costs = drawn_costs(n)
        seconds = cpu_seconds(partial(placed, costs, bins, group), 1 + ROUNDS)[1:]  # the first warms up
        cpu_ms = [1e3 * second for second in seconds]
        places = placed(costs, bins, group)
        name = f"{n}" + (f".groups_of_{group}" if group else "")
        report.check(f"images {name}: each has a bin", int(np.bincount(places, minlength=bins).sum()) == n)
        above = [100 * (ratio - 1) for ratio in ratios(costs, places, bins)]
        label = f"{n:,}" + (f", groups of {group}" if group else "")
        shown.add_row(
            label,
            f"{bins:,}",
            f"{min(cpu_ms):.2f} ({median(cpu_ms):.2f})",
            *(f"{percent:.3f}" for percent in above),
        )
        report.rows.append(Row(f"loading.images.{name}.balance", round(min(cpu_ms), 3), "ms"))
        labels = ("as_given", "planned", "bound")
        rows = [
            Row(f"loading.images.{name}.imbalance.{label}", round(percent, 4), "%")
            for label, percent in zip(labels, above, strict=True)
        ]
        if group:
            rows[1] = at_most(rows[1].name, round(above[1], 4), "%", MOST_ABOVE_IN_GROUPS)
        report.rows += rows
    report.tables.append(shown)


def ratios(costs: Costs, places: np.ndarray, bins: int) -> tuple[float, float, float]:
    """The largest bin over the mean: as given, as placed, and the least possible."""
    given, loads = sums(costs, np.arange(len(costs)) * bins // len(costs), bins), sums(costs, places, bins)
    least = bounds(costs, bins, 1, equal_counts=False)["step"]
    return float(given.max() / given.mean()), float(loads.max() / loads.mean()), least
