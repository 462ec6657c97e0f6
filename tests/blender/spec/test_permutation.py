"""Many permutations at once give what each gives alone, and bad parts of a native call are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.spec.page_order import PageOrder
from blender.spec.permutation import Identity, Permutation, forward_each, keyed
from factory import _native

KEY = bytes(range(32))
SIZES = (1, 5, 300, 4_000)


def made(kind: int, n: int) -> Permutation:
    return (keyed(n, KEY), Identity(), PageOrder(n, 3, keyed(-(-n // 3), KEY)))[kind]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(SIZES), st.integers(0, 9)), max_size=8))
def test_parts_are_permuted_as_each_alone(drawn: list[tuple[int, int, int]]) -> None:
    permutations = [made(kind, n) for kind, n, _ in drawn]
    parts = [np.arange(count, dtype=np.int64) % n for _, n, count in drawn]
    alone = [one.forward(part).tolist() for one, part in zip(permutations, parts, strict=True)]
    positions = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    ends = np.cumsum([len(part) for part in parts]).astype(int).tolist()
    assert forward_each(permutations, positions, ends).tolist() == [item for part in alone for item in part]


@pytest.mark.parametrize(
    "part, sentence",
    [
        ((0, 3, 2, [0] * 6), "Value 2 is out of range. Use 0 to 1."),
        ((0, 4, 9, [0] * 6), "There is no part from 0 to 4 of 3 values."),
        ((2, 1, 9, [0] * 6), "There is no part from 2 to 1 of 3 values."),
        ((0, 3, 1, [0] * 6), "Cannot permute 1 items. Use 2 to 2"),
        ((0, 3, (1 << 62) + 1, [0] * 6), "Use 2 to 2"),
    ],
)
def test_a_part_outside_the_values_or_a_value_outside_its_items_is_refused(
    part: tuple[int, int, int, list[int]], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence.replace("^", r"\^")):
        _native.feistel(np.arange(3), [part], False)
