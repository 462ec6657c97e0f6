"""The rules of a spec for its pictures: transforms, normalization, and the fate of broken ones."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from blender.loading.pictures.transforms import PictureTransform

OnFailure = Literal["raise", "gray"]
Decode = Literal["loader", "constructor"]


class PictureRules(BaseModel):
    """How pictures become patches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    transforms: tuple[PictureTransform, ...] = ()
    """Applied in order to the pixels of the planned size."""
    on_failure: OnFailure = "raise"
    """What happens to a picture that does not decode, is empty or has too many pixels: an error, or a gray
    picture of the planned size, which the step names."""
    background: tuple[int, int, int] = (255, 255, 255)
    """The color behind transparent pixels."""
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    """Subtracted from the colors, from 0 to 1, at the rank."""
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    """Divides them."""
    most_pixels: int = Field(89_478_485, ge=1)
    """The most pixels of a picture; its header tells them before it is decoded."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(0 <= color <= 255 for color in self.background):
            raise ValueError(f"`background` is {self.background}. Give red, green and blue from 0 to 255.")
        if not all(color > 0 for color in self.std):
            raise ValueError(f"`std` is {self.std}, and colors are divided by it. Give numbers above 0.")
        return self
