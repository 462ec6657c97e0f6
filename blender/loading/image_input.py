"""How a model takes pictures: the patches and the tokens that a picture of any size becomes.

    images = ImageInput(patch=14, merge=2, most_patches=1_024)
    images.grid(np.array([640]), np.array([480]))   # patches a line [36], lines of patches [26]
    images.n_tokens(np.array([640]), np.array([480]))   # [234]: four patches become a token of the backbone

A picture keeps its ratio and is scaled down, never up, to at most `most_patches`, and to whole squares of
`merge` patches. The arithmetic is of whole numbers, so a plan knows the cost of a picture from its width and
height alone, the same on every machine.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

Ints = npt.NDArray[np.int64]


class ImageInput(BaseModel):
    """The patches of a vision encoder, and the tokens that its backbone gets for them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    patch: int = Field(14, ge=1, le=1_024)
    """Pixels a side of a patch."""
    merge: int = Field(2, ge=1, le=64)
    """Patches a side of the square that becomes one token of the backbone."""
    most_patches: int = Field(4_096, ge=1, le=1 << 24)
    """The most patches of a picture; larger ones are scaled down."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.merge * self.merge > self.most_patches:
            raise ValueError(
                f"`most_patches` is {self.most_patches}, below the {self.merge * self.merge} patches of one "
                "token. Raise it, or lower `merge`."
            )
        return self

    def grid(self, widths: npt.ArrayLike, heights: npt.ArrayLike) -> tuple[Ints, Ints]:
        """The patches a line and the lines of patches of pictures of these sizes in pixels; shapes [n]."""
        width, height = np.asarray(widths, dtype=np.int64), np.asarray(heights, dtype=np.int64)
        side = self.patch * self.merge
        across, down = -(-width // side), -(-height // side)  # squares, cut ones included
        most = self.most_patches // (self.merge * self.merge)
        large = across * down > most
        across[large], down[large] = _scaled(width[large], height[large], most)
        return across * self.merge, down * self.merge

    def n_patches(self, widths: npt.ArrayLike, heights: npt.ArrayLike) -> Ints:
        """The patches of each picture."""
        across, down = self.grid(widths, heights)
        return across * down

    def n_tokens(self, widths: npt.ArrayLike, heights: npt.ArrayLike) -> Ints:
        """The tokens of the backbone that each picture becomes."""
        return self.tokens_of(self.n_patches(widths, heights))

    def tokens_of(self, n_patches: Ints) -> Ints:
        """The tokens of pictures of so many patches."""
        return n_patches // (self.merge * self.merge)


def _scaled(width: Ints, height: Ints, most: int) -> tuple[Ints, Ints]:
    """The squares across and down, at most `most` of them, nearest to the ratio of the sides."""
    across = np.clip(_integer_root(most * width // height), 1, most)
    down = np.clip(_integer_root(most * height // width), 1, most)
    return np.minimum(across, most // down), down


def _integer_root(numbers: Ints) -> Ints:
    """The largest integers with squares up to `numbers`, exact where a root of floats is not."""
    root = np.sqrt(numbers.astype(np.float64)).astype(np.int64)
    root -= root * root > numbers
    return root + ((root + 1) * (root + 1) <= numbers)
