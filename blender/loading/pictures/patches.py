"""Pixels cut into patches, in the order in which an encoder merges them.

    patches_of(pixels, patch=14, merge=2)       # uint8 [n, 14 * 14 * 3]

A square of `merge` x `merge` patches becomes one token of the backbone, so its patches follow each other, as
Qwen2-VL orders them (its paper, 2.1): squares by lines of the grid, within a square patches by lines.

    merge 2, 4 patches a line         0 1 4 5
                                      2 3 6 7

A patch is its pixels by lines, three values a pixel: red, green, blue.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def patches_of(pixels: Pixels, patch: int, merge: int) -> Pixels:
    """The patches of a picture [height, width, 3] with sides that are multiples of `patch * merge`."""
    height, width, channels = pixels.shape
    side = patch * merge
    squares = pixels.reshape(height // side, merge, patch, width // side, merge, patch, channels)
    return squares.transpose(0, 3, 1, 4, 2, 5, 6).reshape(-1, patch * patch * channels)


def pixels_of_patches(patches: Pixels, across: int, down: int, patch: int, merge: int) -> Pixels:
    """The inverse of `patches_of`, of `across` patches a line and `down` lines of patches."""
    squares = patches.reshape(down // merge, across // merge, merge, merge, patch, patch, 3)
    return squares.transpose(0, 2, 4, 1, 3, 5, 6).reshape(down * patch, across * patch, 3)
