"""The time of microbatches in a pipeline of stages: one forward and one backward pass in turn, simulated.

    pipelined(np.ones((1, 32)), stages=8)       # array([117.]): 39 microbatches of 3

Megatron's 1F1B without interleaving (Narayanan et al., "PipeDream", 2019). All stages take the same time for
a microbatch, and passing it on takes none. Each pass has a tick, after the passes that it waits for,
and the passes of a tick are timed at once, for all buckets. With three stages:

    tick       0   1   2   3   4   5   6   7
    stage 0    F0  F1          F2  B0  F3  B1
    stage 1        F0      F1  B0  F2  B1
    stage 2            F0  B0  F1  B1  F2  B2

Stage s of p begins with p - 1 - s forward passes i at ticks s + i, and continues with forward passes at s + 2
i and backward passes at 2 p - 1 - s + 2 i in turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BACKWARD = 2.0  # the time of a backward pass over that of its forward pass


@dataclass(frozen=True)
class _Passes:
    """Passes of one direction that run in a tick: their stages, and the microbatch of each."""

    stages: Ints
    microbatches: Ints


def pipelined(costs: Floats, stages: int) -> Floats:
    """The time of each bucket; `costs` [buckets, bins] are the forward times of a stage.

    Sums have one order, so that a time is equal on every machine.
    """
    if stages == 1:
        return np.cumsum(costs, axis=1)[:, -1] * (1 + BACKWARD)
    forward = np.ascontiguousarray(costs.T)
    backward = BACKWARD * forward
    free = np.zeros((stages, len(costs)))
    came = np.zeros((stages + 1, len(costs)))  # when the stage before ended the forward pass that is next
    returned = np.zeros((stages + 1, len(costs)))  # when this stage ended its last backward pass
    for forth, back in _ticks(stages, costs.shape[1]):
        ends = np.maximum(free[forth.stages], came[forth.stages]) + forward[forth.microbatches]
        back_ends = np.maximum(free[back.stages], returned[back.stages + 1]) + backward[back.microbatches]
        free[forth.stages] = came[forth.stages + 1] = ends
        free[back.stages] = returned[back.stages] = back_ends
    last: Floats = free.max(axis=0)
    return last


def time_of_equal(stages: int, n_bins: int) -> float:
    """The time of microbatches of cost 1."""
    return (n_bins + stages - 1) * (1 + BACKWARD)


@lru_cache(8)  # a planner simulates the same pipeline at every step
def _ticks(stages: int, n_bins: int) -> list[tuple[_Passes, _Passes]]:
    """The forward and the backward passes of each tick."""
    number = np.arange(stages)
    ahead = np.minimum(stages - 1 - number, n_bins)
    ticks = []
    for tick in range(2 * (stages + n_bins - 1)):
        since = tick - number
        begins = (since >= 0) & (since < ahead)
        goes_on = (since % 2 == 0) & (since // 2 >= ahead) & (since // 2 < n_bins)
        microbatch = np.where(begins, since, since // 2)
        back = since - 2 * (stages - 1 - number) - 1
        returns = (back >= 0) & (back % 2 == 0) & (back // 2 < n_bins)
        ticks.append((_passes(begins | goes_on, microbatch), _passes(returns, back // 2)))
    return ticks


def _passes(run: npt.NDArray[np.bool_], microbatch: Ints) -> _Passes:
    stages = np.flatnonzero(run)
    return _Passes(stages, microbatch[stages])
