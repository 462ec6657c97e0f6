"""Draw docs/img/loading.svg: the microbatches of a step as the blend gives its rows, and as planned.

python docs/img/loading.py      # writes loading.svg beside this file
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, Costs
from blender.loading.graph import DGraph
from blender.loading.tree import ClientPlaceTree
from blender.spec.mesh import Mesh

RANKS, MICROBATCHES, LENGTH = 8, 4, 32_768


def step() -> StepColumns:
    """A row a microbatch, full of documents of lognormal lengths."""
    draw = np.random.default_rng(28)
    squares = []
    for _ in range(RANKS * MICROBATCHES):
        ends = np.minimum(np.cumsum(draw.lognormal(7.2, 1.6, 4_096).astype(np.int64) + 1), LENGTH)
        squares.append(int((np.diff(np.unique(np.concatenate([[0], ends]))) ** 2).sum()))
    rows = np.arange(len(squares))
    facts = {
        "n_tokens": np.full(len(squares), LENGTH, dtype=np.uint64),
        "squared_lengths": np.array(squares, dtype=np.uint64),
    }
    return StepColumns("0" * 32, 0, ("packed.long",), rows * 0, rows * 0, rows, facts)


def draw(axes: plt.Axes, loads: Costs, title: str) -> None:
    """A bar for each rank, a box for each of its microbatches; the dotted lines are where all ranks wait."""
    mean = float(loads.mean())
    waits = np.cumsum(loads.max(axis=0) / mean)
    starts = np.concatenate([[0], waits[:-1]])
    for slot in range(MICROBATCHES):
        axes.barh(range(RANKS), loads[:, slot] / mean, left=starts[slot], height=0.7, edgecolor="white")
        axes.axvline(waits[slot], color="black", linestyle=":", linewidth=0.8)
    axes.set_title(f"{title}: {waits[-1]:.1f} microbatches of time", loc="left", fontsize=10)
    axes.set_yticks(range(RANKS), [f"rank {rank}" for rank in range(RANKS)], fontsize=8)
    axes.invert_yaxis()


def main() -> None:
    """Write the picture."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "loading"})
    graph = DGraph.of(step(), ClientPlaceTree(Mesh(dp=RANKS)), ("n_tokens", "squared_lengths"))
    graph.distribute("DP")
    graph.cost(Backbone(hidden=2048, layers=32))
    graph.balance("greedybinpacking", bins=MICROBATCHES, level="both")
    plan = graph.plan()
    figure, (before, after) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, layout="constrained")
    draw(before, plan.as_given, "as given")
    draw(after, plan.loads, "as planned")
    after.set_xlabel("time, in mean microbatches; ranks wait for each other at the dotted lines", fontsize=8)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
