"""The patches of a picture are whole squares, at most as many as allowed, the same as by exact integers."""

from __future__ import annotations

from math import isqrt

from hypothesis import given
from hypothesis import strategies as st

from blender.loading.image_input import ImageInput

SIDES = st.integers(1, 100_000) | st.integers(1, (1 << 31) - 1)


@given(
    width=SIDES,
    height=SIDES,
    patch=st.integers(1, 32),
    merge=st.integers(1, 4),
    most=st.integers(16, 1 << 24),
)
def test_the_grid_is_exact_at_any_size(width: int, height: int, patch: int, merge: int, most: int) -> None:
    images = ImageInput(patch=patch, merge=merge, most_patches=most)
    across, down = (int(side[0]) for side in images.grid([width], [height]))
    squares = most // (merge * merge)
    assert across % merge == down % merge == 0
    assert 1 <= across // merge * (down // merge) <= squares
    full = -(-width // (patch * merge)), -(-height // (patch * merge))
    if full[0] * full[1] <= squares:
        assert (across // merge, down // merge) == full
    else:
        lines = min(max(1, isqrt(squares * height // width)), squares)
        columns = min(max(1, isqrt(squares * width // height)), squares)
        assert (across // merge, down // merge) == (min(columns, squares // lines), lines)
