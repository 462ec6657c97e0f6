"""The bench of shuffles: rows at hand count the shards that are begun and not finished."""

from __future__ import annotations

import numpy as np
import pytest

from bench.shuffle.peers import rows_of_open_shards


@pytest.mark.parametrize(
    "order, expected",
    [
        ([0, 1, 2, 3, 4, 5], 2),  # shards of 2, one after another
        ([0, 2, 1, 3, 4, 5], 4),  # two at once
        ([0, 2, 4, 1, 3, 5], 6),
        ([4, 0, 5, 2, 1, 3], 4),  # a third begins when the first is finished
    ],
)
def test_a_shard_is_at_hand_from_its_first_row_to_its_last(order: list[int], expected: int) -> None:
    assert rows_of_open_shards(np.array(order), 2) == expected
