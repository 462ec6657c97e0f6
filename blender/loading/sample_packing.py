"""Samples of a microbatch put into rows of a fixed length by first fit, in the order of the plan.

    packed = first_fit(np.array([5, 4, 3, 2]), capacity=8)
    packed.row, packed.start                    # [0, 1, 0, 1], [0, 0, 5, 4]

A sample goes to the first row that has room, so that rows depend on the lengths and their order alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FirstFit:
    """The places of samples; shapes are [samples]."""

    row: Ints
    start: Ints
    """The place of its first token in the row."""


def first_fit(lengths: Ints, capacity: int) -> FirstFit:
    """The row and the first token of each sample; no sample is longer than `capacity`.

    A tree of the most room below each node finds the row in a logarithmic number of looks.
    """
    n = len(lengths)
    leaves = 1
    while leaves < n:
        leaves *= 2
    room = [capacity] * (2 * leaves)
    rows, starts = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for sample, length in enumerate(lengths.tolist()):
        node = 1
        while node < leaves:
            node *= 2
            if room[node] < length:
                node += 1
        rows[sample], starts[sample] = node - leaves, capacity - room[node]
        room[node] -= length
        while node > 1:
            node //= 2
            room[node] = max(room[2 * node], room[2 * node + 1])
    return FirstFit(rows, starts)
