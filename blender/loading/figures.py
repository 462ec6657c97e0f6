"""The value of a plan: the time of a step at each barrier, over the time of ranks with equal costs.

    times(loads, stages=8)["microbatch"]        # 1.61: FSDP takes 61 % longer than with equal microbatches

Times are relative to microbatches of equal cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blender.loading.bin_order import BARRIERS, Barrier
from blender.loading.costs import Costs, total_cost
from blender.loading.pipeline import BACKWARD, pipelined, time_of_equal


@dataclass(frozen=True)
class StepTimes:
    """The time of a step relative to equal costs: with the blend's order of rows, and as planned."""

    before: float
    after: float
    bound: float
    """No plan of these rows is below it."""


def times(loads: Costs, stages: int = 1) -> dict[Barrier, float]:
    """The time of a step at each barrier relative to equal bins; `loads` has the shape [buckets, bins].

    Rows that cost nothing take the time of equal ones.
    """
    n_bins = loads.shape[1]
    mean = float(loads.mean(dtype=np.float64))
    if not mean:
        return dict.fromkeys(BARRIERS, 1.0)
    equal = {"step": n_bins, "microbatch": n_bins, "pipeline": time_of_equal(stages, n_bins)}
    return {barrier: duration(loads, barrier, stages) / (mean * equal[barrier]) for barrier in BARRIERS}


def spreads(loads: Costs) -> dict[Barrier, float]:
    """The largest load over the smallest: of buckets in a step, and of those in a microbatch, at the mean.

    Loads of 0 count as 1. `loads` has the shape [buckets, bins]; stages of a pipeline wait for microbatches.
    """
    of_step = loads.sum(axis=1).astype(np.float64)
    of_slots = loads.astype(np.float64)
    in_slots = of_slots.max(axis=0) / np.maximum(1.0, of_slots.min(axis=0))
    in_step = float(of_step.max() / max(1.0, float(of_step.min())))
    return {"step": in_step, "microbatch": float(in_slots.mean()), "pipeline": float(in_slots.mean())}


def duration(loads: Costs, barrier: Barrier, stages: int = 1) -> float:
    """The time of a step at a barrier, in the unit of costs; a pipeline's includes passes both ways.

    Equal on every machine, so that plans may be chosen by it.
    """
    match barrier:
        case "step":
            return float(loads.sum(axis=1).max())
        case "microbatch":
            return float(loads.max(axis=0).sum())
        case "pipeline":
            return float(pipelined(loads.astype(np.float64), stages).max())


def bounds(
    costs: Costs, buckets: int, bins: int, *, equal_counts: bool, stages: int = 1
) -> dict[Barrier, float]:
    """The least time at each barrier that rows of these costs allow, relative to equal bins."""
    total = total_cost(costs)
    if not total:
        return dict.fromkeys(BARRIERS, 1.0)
    largest = max(1.0, float(costs.max()) * buckets / total)  # the load of a bucket over that of equal ones
    microbatch = largest
    if equal_counts and len(costs) == buckets * bins:  # a row a bin: like rows side by side are the best
        slots = np.sort(costs.astype(np.float64)).reshape(bins, buckets)
        microbatch = float(slots.max(axis=1).sum() * buckets / total)
    pipeline = _least_of_pipeline(costs, buckets, bins, equal_counts=equal_counts, stages=stages)
    return {"step": largest, "microbatch": microbatch, "pipeline": pipeline / total}


def bounds_of_groups(costs: Costs, ranks: int, cp: int, bins: int, stages: int) -> dict[Barrier, float]:
    """The least time at each barrier if a row may be cut for up to `cp` ranks, relative to equal bins."""
    total = total_cost(costs)
    largest = max(1.0, float(costs.max()) / cp * ranks / total) if total else 1.0
    alone = bins / (bins + stages - 1)  # a stage that never waits
    return {"step": largest, "microbatch": largest, "pipeline": largest * alone}


def _least_of_pipeline(costs: Costs, buckets: int, bins: int, *, equal_counts: bool, stages: int) -> float:
    """The least time of the slowest bucket in a pipeline, in the unit in which equal bins take all costs.

    The last stage works through its bucket. Before it, the first microbatch passes the other stages forward,
    and after it the last one passes them backward, which takes `BACKWARD` times as long. At the ends of all
    buckets stand at best the microbatches of the cheapest rows. The costliest row passes all stages both
    ways.
    """
    total = total_cost(costs)
    in_bin = 1
    if equal_counts:
        in_bin = len(costs) // (buckets * bins)
    elif len(costs) < buckets * bins:
        in_bin = 0  # bins without rows may stand at the ends
    end = in_bin * buckets  # the rows at one end of all buckets
    cheapest = np.sort(costs)[: 2 * end]
    last, first = total_cost(cheapest[:end]), total_cost(cheapest[end:] if bins > 1 else cheapest[:end])
    last_stage = (total + (stages - 1) * (first + BACKWARD * last) / (1 + BACKWARD)) / buckets
    slowest = max(last_stage, stages * float(costs.max()))
    return slowest * buckets * bins / (bins + stages - 1)
