"""Patches are in the order of the squares that an encoder merges."""

from __future__ import annotations

import numpy as np
import pytest

from blender.loading.pictures.patches import patches_of, pixels_of_patches


def test_the_patches_of_a_merged_square_follow_each_other() -> None:
    lines, columns = np.mgrid[0:4, 0:4]
    pixels = np.repeat((4 * lines + columns)[..., None], 3, axis=2).astype(np.uint8)
    assert patches_of(pixels, patch=1, merge=2)[:, 0].tolist() == [
        *(0, 1, 4, 5, 2, 3, 6, 7),
        *(8, 9, 12, 13, 10, 11, 14, 15),
    ]


@pytest.mark.parametrize("patch, merge, across, down", [(1, 1, 3, 2), (2, 2, 6, 4), (3, 1, 1, 5)])
def test_patches_are_the_pixels_again(patch: int, merge: int, across: int, down: int) -> None:
    shape = (down * patch, across * patch, 3)
    pixels = np.random.default_rng(patch).integers(0, 256, shape, dtype=np.uint8)
    patches = patches_of(pixels, patch, merge)
    assert patches.shape == (across * down, patch * patch * 3)
    assert (pixels_of_patches(patches, across, down, patch, merge) == pixels).all()
