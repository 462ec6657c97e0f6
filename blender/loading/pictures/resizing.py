"""Pixels in another size, by Pillow's bicubic filter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PIL import Image

Pixels = npt.NDArray[np.uint8]


def in_size(pixels: Pixels, width: int, height: int) -> Pixels:
    """The picture [h, w, 3] in another size; the same array where it has that size."""
    if pixels.shape[:2] == (height, width):
        return pixels
    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.array(image.resize((width, height), Image.Resampling.BICUBIC))
