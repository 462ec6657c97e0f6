"""The cost of looking up rows of a Grain mixture; run in Grain's environment.

Arguments: a JSON list of lists of proportions, and the number of rows. Prints one JSON line: for each list
the CPU microseconds per lookup by its rule alone and by `ds[k]`, the best of 3, and the counts of the rows.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from grain import MapDataset
from grain._src.python.dataset.transformations.mix import _dataset_and_key_of_next_element

from bench.timing import cpu_seconds

LENGTH = 1 << 40  # rows of every source: a range, which costs almost nothing to read


def cpu_us(look_up: Callable[[int], Any], rows: range) -> float:
    """CPU microseconds per row, the best of 3."""
    return min(cpu_seconds(lambda: deque(map(look_up, rows), maxlen=0))) / len(rows) * 1e6


def measured(proportions: list[int], rows: range) -> dict[str, Any]:
    """The figures of one mixture."""
    parents = [MapDataset.range(LENGTH) for _ in proportions]
    mixed = MapDataset.mix(parents, weights=proportions)
    shares = tuple(proportions)
    places = [_dataset_and_key_of_next_element(row, shares) for row in rows]
    counts = [0] * len(proportions)
    for source, _ in places:
        counts[source] += 1
    return {
        "rule_us": cpu_us(lambda row: _dataset_and_key_of_next_element(row, shares), rows),
        "get_us": cpu_us(mixed.__getitem__, rows),
        "counts": counts,
    }


print(json.dumps([measured(it, range(int(sys.argv[2]))) for it in json.loads(sys.argv[1])]))
