"""The order of the bins of each bucket, and the buckets of bins, for the barrier at which ranks meet.

    step         ranks meet once a step (DDP): equal sums are enough, and bins stay in the order of the method
    microbatch   ranks meet at every microbatch (FSDP): bins of like cost have the same place in all buckets
    pipeline     stages pass microbatches on (1F1B): small ones stand at both ends, where stages wait

Equal sums per rank alone gain nothing at the barrier `microbatch`; sorting the bins of each bucket does.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from blender.arrays import as_arrow, as_numpy
from blender.loading.costs import Costs
from blender.loading.pipeline import pipelined
from factory import _native

Barrier = Literal["step", "microbatch", "pipeline"]
BARRIERS: tuple[Barrier, ...] = get_args(Barrier)
Ints = npt.NDArray[np.int64]


def ordered(loads: Costs, barrier: Barrier, stages: int = 1) -> Ints:
    """The new place of each bin in its bucket; `loads` and the result have the shape [buckets, bins].

    In a pipeline of `stages` a bucket of few bins is faster by descending load than with the small ones at
    both ends, so each bucket gets the order of the two that the simulation prefers.
    """
    n_bins = loads.shape[1]
    if barrier == "step":
        return np.broadcast_to(np.arange(n_bins), loads.shape)
    descending = np.argsort(np.iinfo(np.uint64).max - loads, axis=1, kind="stable")
    rank_of_bin = np.empty_like(descending)
    np.put_along_axis(rank_of_bin, descending, np.broadcast_to(np.arange(n_bins), loads.shape), axis=1)
    if barrier == "microbatch":
        return rank_of_bin
    hills = hill(n_bins)[rank_of_bin]
    both = np.concatenate([moved(loads, hills), moved(loads, rank_of_bin)]).astype(np.float64)
    of_hills, of_descending = pipelined(both, stages).reshape(2, -1)
    return np.where((of_descending < of_hills)[:, None], rank_of_bin, hills)


def moved(loads: Costs, places: Ints) -> Costs:
    """The loads of bins at their new places; all shapes are [buckets, bins]."""
    at_place = np.empty_like(loads)
    np.put_along_axis(at_place, places, loads, axis=1)
    return at_place


def hill(n: int) -> Ints:
    """The place of each bin by descending load: the least loaded ones at both ends, the others between."""
    ascending = np.arange(n)[::-1]
    places = np.concatenate([ascending[0::2], ascending[1::2][::-1]])  # the bin at each place
    return np.argsort(places)


def dealt(loads: Costs, buckets: int, barrier: Barrier) -> Ints:
    """The bucket of each bin in its group, all with the same number of bins; shapes [groups, bins]."""
    n_groups, n_bins = loads.shape
    if barrier != "microbatch":
        ends = [n_bins * (group + 1) for group in range(n_groups)]
        placed = _native.balance_greedy(as_arrow(loads.reshape(-1)), ends, buckets, equal_counts=True)
        return as_numpy(placed).astype(np.int64).reshape(loads.shape)
    bucket_of_bin = np.empty(loads.shape, dtype=np.int64)
    sums = np.zeros((n_groups, buckets), dtype=np.uint64)
    descending = np.argsort(np.iinfo(np.uint64).max - loads, axis=1, kind="stable")
    for first in range(0, n_bins, buckets):
        bins = descending[:, first : first + buckets]
        by_sum = np.argsort(sums, axis=1, kind="stable")  # the costliest bin to the least loaded bucket
        np.put_along_axis(bucket_of_bin, bins, by_sum, axis=1)
        with_bin = np.take_along_axis(sums, by_sum, axis=1) + np.take_along_axis(loads, bins, axis=1)
        np.put_along_axis(sums, by_sum, with_bin, axis=1)
    return bucket_of_bin
