"""Steps of drawn rows, without a blend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blender.loading.columns import StepColumns


def step_of(lengths: Sequence[Sequence[int]], sources: int = 1) -> StepColumns:
    """A step whose rows hold documents of these lengths, dealt to sources in turn."""
    n = len(lengths)
    return StepColumns(
        blend="0" * 32,
        offset=5,
        sources=tuple(f"packed.s{number}" for number in range(sources)),
        source=np.arange(n) % sources,
        epoch=np.zeros(n, dtype=np.int64),
        ordinal=np.arange(n) // sources,
        facts={
            "n_tokens": np.array([sum(row) for row in lengths], dtype=np.uint64),
            "squared_lengths": np.array([sum(n * n for n in row) for row in lengths], dtype=np.uint64),
        },
    )
