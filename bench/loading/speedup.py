"""What balance is worth to a vision-language model: the time of a step as given over its time as planned.

Each microbatch is a sequence filled with pairs of text and picture. Ranks encode pictures, exchange the
tokens, and run the backbone in a pipeline. A replica's pictures go to its own ranks in turn (`as given`);
the backbone's sequences are balanced over replicas (`backbone`); pictures are balanced over all ranks, within
each microbatch or over the step (`microbatch`, `step`). Times are simulated: FLOPs of the encoder and of each
stage, a barrier after the encoder, 1F1B in the backbone, no communication.

MegaScale-Data (Figures 12 to 14 and 16) reports 3.63, 4.54, 2.34 and 2.7 times, and 1.71, 2.63 and 3.09 for
contexts of 4k, 8k and 16k, on data and clusters that it does not give.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from statistics import mean

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, table
from bench.loading.laws import LAWS, Lengths, sequence
from bench.loading.pictures import pairs_by_source
from bench.loading.real_pictures import samples
from blender.loading.costs import Backbone, Costs, Encoder, sums
from blender.loading.figures import duration
from blender.loading.pipeline import BACKWARD
from blender.loading.placement import Balance, Grid, as_given

ENCODERS = {"ViT-1B": Encoder(hidden=1_408, layers=39), "ViT-2B": Encoder(hidden=1_664, layers=48)}
BACKBONES = {
    "Llama-12B": Backbone(hidden=4_608, layers=45),
    "tMoE-25B": Backbone(hidden=2_048, layers=42, topk=2),
    "Mixtral-8x7B": Backbone(hidden=4_096, layers=32, topk=2),
}
CONTEXTS = (4_096, 8_192, 16_384)
SEEDS = range(3)
CAVEATS = (
    "`speedup`: every time is simulated from FLOPs, none is measured, and nothing waits for a network. The "
    "paper's figures are of its own data and clusters; they stand beside ours and are no aims.",
)
DATA = "`speedup`: pairs of drawn lengths, and of three Debian packages"


@dataclass(frozen=True)
class Cluster:
    """The mesh of a run, and the sequences that a replica reads in a step."""

    dp: int
    tp: int
    pp: int
    microbatches: int
    cp: int = 1

    @property
    def ranks_of_replica(self) -> int:
        """The ranks that share a replica of the backbone."""
        return self.tp * self.pp * self.cp

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.dp * self.ranks_of_replica


@dataclass(frozen=True)
class StepTime:
    """FLOPs on the slowest rank, in a step."""

    as_given: float
    backbone: float
    microbatch: float
    step: float
    encoder: float
    """The encoder's part of `as_given`."""

    def speedup(self, name: str) -> float:
        """The time as given over the time of a plan."""
        return self.as_given / float(getattr(self, name))


GRID = Cluster(dp=9, tp=4, pp=8, microbatches=8)  # 288 ranks, batch 72: the paper's Table 2
CASES = {
    "Figure 12: 288 ranks, 8 layers": (GRID, 8, 3.63),
    "Figure 16: 576 ranks, 16 layers": (replace(GRID, dp=18), 16, 2.7),
    "Figure 14: 576 ranks, batch 128": (Cluster(dp=8, tp=4, pp=9, microbatches=16, cp=2), 45, 2.34),
}
PAPER_BY_CONTEXT = dict(zip(CONTEXTS, (1.71, 2.63, 3.09), strict=True))
PAPER_MOST = 4.54


def measure(progress: Console) -> Report:
    """Simulate steps of each law, encoder, backbone and context, then the paper's cases."""
    report = Report(CAVEATS, DATA)
    progress.print("reading the sizes of real pictures")
    lengths: dict[str, Lengths] = {**LAWS, "stamps and pages": pairs_by_source(samples())["all"]}
    progress.print("simulating steps")
    _add_grid(report, lengths)
    _add_cases(report, lengths)
    return report


def _add_grid(report: Report, lengths: dict[str, Lengths]) -> None:
    figures = table(
        f"Times faster than as given, {GRID.ranks} ranks (simulated): Figure 13",
        "lengths | encoder | backbone | context | encoder's share | backbone | + microbatch | + step",
    )
    by_context: dict[int, list[StepTime]] = {context: [] for context in CONTEXTS}
    for (name, pairs), encoder, backbone, context in product(lengths.items(), ENCODERS, BACKBONES, CONTEXTS):
        times = mean_times(pairs, GRID, ENCODERS[encoder], BACKBONES[backbone], context)
        by_context[context].append(times)
        figures.add_row(
            name, encoder, backbone, f"{context:,}", f"{times.encoder / times.as_given:.0%}", *_cells(times)
        )
        label = f"loading.speedup.{name.split()[0]}.{encoder}.{backbone}.{context}.step"
        report.rows.append(Row(label, round(times.speedup("step"), 3), "ratio"))
    report.tables.append(figures)
    means = table(
        "Means by context (simulated)", "context | backbone | + microbatch | + step | the paper's mean"
    )
    for context, some in by_context.items():
        ratios = [mean(times.speedup(way) for times in some) for way in ("backbone", "microbatch", "step")]
        means.add_row(f"{context:,}", *(f"{ratio:.2f}x" for ratio in ratios), f"{PAPER_BY_CONTEXT[context]}x")
        report.rows.append(Row(f"loading.speedup.mean.{context}.step", round(ratios[-1], 3), "ratio"))
    most = max(times.speedup("step") for some in by_context.values() for times in some)
    means.add_row("the most", "", "", f"{most:.2f}x", f"{PAPER_MOST}x")
    report.rows.append(Row("loading.speedup.most.step", round(most, 3), "ratio"))
    report.tables.append(means)


def _add_cases(report: Report, lengths: dict[str, Lengths]) -> None:
    figures = table(
        "Llama-12B and ViT-2B, lengths of any resolution, 8k (simulated)",
        "case | encoder's share | backbone | + microbatch | + step | the paper",
    )
    pairs = next(law for name, law in lengths.items() if name.startswith("any"))
    for name, (cluster, layers, paper) in CASES.items():
        backbone = replace(BACKBONES["Llama-12B"], layers=layers)
        times = mean_times(pairs, cluster, ENCODERS["ViT-2B"], backbone, 8_192)
        figures.add_row(name, f"{times.encoder / times.as_given:.0%}", *_cells(times), f"{paper}x")
        report.rows += _rows(f"loading.speedup.figure_{name.split()[1].rstrip(':')}", times)
    report.tables.append(figures)


def mean_times(
    pairs: Lengths, cluster: Cluster, encoder: Encoder, backbone: Backbone, context: int
) -> StepTime:
    """The mean time of steps of several seeds."""
    steps = [_step(pairs, cluster, encoder, backbone, context, seed) for seed in SEEDS]
    return StepTime(*(mean(getattr(step, name) for step in steps) for name in StepTime.__dataclass_fields__))


def _step(
    pairs: Lengths, cluster: Cluster, encoder: Encoder, backbone: Backbone, context: int, seed: int
) -> StepTime:
    random = np.random.default_rng(seed)
    n_sequences = cluster.dp * cluster.microbatches
    pairs_of_sequences = [sequence(pairs, context, random) for _ in range(n_sequences)]
    patches = np.concatenate([pictures for pictures, _ in pairs_of_sequences])
    of_sequence = np.repeat(np.arange(n_sequences), [len(pictures) for pictures, _ in pairs_of_sequences])
    pictures = encoder({"n_patches": patches})
    sequences = backbone(
        {
            "n_tokens": np.array([lengths.sum() for _, lengths in pairs_of_sequences]),
            "squared_lengths": np.array([(lengths**2).sum() for _, lengths in pairs_of_sequences]),
        }
    )
    grid = Grid(cluster.dp, cluster.microbatches, cluster.dp, cluster.pp)
    in_order = as_given(n_sequences, grid)
    balance = Balance(grid, "greedybinpacking", sequences, barrier="pipeline").place(in_order.bucket, "both")
    flops_of_cost, unit = (1 + BACKWARD) * encoder.flops, backbone.flops / cluster.ranks_of_replica
    before = _backbone(sequences, in_order.bucket, in_order.bin, grid) * unit
    after = _backbone(sequences, balance.bucket, balance.bin, grid) * unit
    in_turn = flops_of_cost * _in_turn(
        pictures, in_order.bucket[of_sequence], in_order.bin[of_sequence], cluster
    )
    with_sequences = flops_of_cost * _in_turn(
        pictures, balance.bucket[of_sequence], balance.bin[of_sequence], cluster
    )
    within = flops_of_cost * sum(
        _balanced(pictures[balance.bin[of_sequence] == number], cluster.ranks)
        for number in range(cluster.microbatches)
    )
    over = flops_of_cost * _balanced(pictures, cluster.ranks)
    return StepTime(in_turn + before, with_sequences + after, within + after, over + after, in_turn)


def _backbone(costs: Costs, bucket: np.ndarray, bin: np.ndarray, grid: Grid) -> float:
    """The time of the slowest replica, both passes, in units of costs over the stages of one rank."""
    loads = sums(costs, bucket * grid.bins + bin, grid.size).reshape(grid.buckets, grid.bins)
    return duration(loads, "pipeline", grid.stages)


def _in_turn(costs: Costs, bucket: np.ndarray, bin: np.ndarray, cluster: Cluster) -> float:
    """The time of the encoder if the ranks of a replica take its pictures in turn, with a barrier each
    microbatch."""
    n_ranks = cluster.ranks_of_replica
    time = 0.0
    for number in range(cluster.microbatches):
        slowest = 0
        for replica in range(cluster.dp):
            own = costs[(bucket == replica) & (bin == number)]
            slowest = max(slowest, int(sums(own, np.arange(len(own)) % n_ranks, n_ranks).max()))
        time += slowest
    return time


def _balanced(costs: Costs, n_ranks: int) -> float:
    """The time of the encoder if pictures are balanced over all ranks."""
    if not len(costs):
        return 0.0
    grid = Grid(n_ranks, 1, n_ranks)
    balance = Balance(grid, "greedybinpacking", costs, equal_counts=False)
    bucket = balance.place(as_given(len(costs), grid).bucket, "both", reorder=False).bucket
    return float(sums(costs, bucket, n_ranks).max())


def _cells(times: StepTime) -> list[str]:
    return [f"{times.speedup(way):.2f}x" for way in ("backbone", "microbatch", "step")]


def _rows(label: str, times: StepTime) -> list[Row]:
    ways = ("backbone", "microbatch", "step")
    return [Row(f"{label}.{way}", round(times.speedup(way), 3), "ratio") for way in ways]
