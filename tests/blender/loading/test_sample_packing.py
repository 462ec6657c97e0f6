"""First fit puts samples into the first row with room."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from blender.loading.sample_packing import first_fit


@given(st.lists(st.integers(0, 16), max_size=60))
def test_each_sample_is_in_the_first_row_with_room(lengths: list[int]) -> None:
    fits = first_fit(np.array(lengths, dtype=np.int64), capacity=16)
    sums: list[int] = []
    for length, row, start in zip(lengths, fits.row.tolist(), fits.start.tolist(), strict=True):
        first = next((place for place, n in enumerate(sums) if n + length <= 16), len(sums))
        if first == len(sums):
            sums.append(0)
        assert (row, start) == (first, sums[first])
        sums[first] += length
