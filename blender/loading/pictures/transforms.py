"""Transforms of decoded pictures, declared by name: pixels of the planned size in, the same shape out.

    declared = PictureTransform(name="flip", parameters={"probability": 0.5})
    apply([transform], pixels, seed=7, offset=1_000, row=3, number=0)      # uint8 [height, width, 3]

A random transform draws from its own generator, seeded by the seed of the blend, the step, the row, the
picture's place in the row, and the name. So a sample looks the same from any loader, and when a step is read
again. The blend enters by its seed, which an update keeps, so that `reweight` changes no earlier step.

A transform of your own is `module:function`, a function of the pixels, a generator and its parameters.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from blender.errors import InvalidRequest
from blender.named_function import named_function
from factory.errors import FactoryError, first_line

Pixels = npt.NDArray[np.uint8]
Function = Callable[..., Pixels]


class PictureTransform(BaseModel):
    """A transform by its name, with its parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """One of `TRANSFORMS`, or one of your own as `module:function`."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    deterministic: bool = True
    """Whether equal arguments give equal pixels; a step that is read again would else differ."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.deterministic:
            raise ValueError(refusal(self.name))
        return self


def refusal(name: str) -> str:
    """Why a transform that is not deterministic is refused, and what to do."""
    return (
        f"Transform `{name}` is declared `deterministic=False`, and a loader makes a step again for a late "
        "rank or after a failure. Apply it in `PlannedProduction(transform=)`, whose durable batches are "
        "made once."
    )


def flip(pixels: Pixels, generator: np.random.Generator, probability: float = 0.5) -> Pixels:
    """The picture, mirrored from left to right with a probability."""
    return pixels[:, ::-1] if generator.random() < probability else pixels


def crop(pixels: Pixels, generator: np.random.Generator, least: float = 0.8, most: float = 1.0) -> Pixels:
    """A random box of the picture, of its ratio and `least` to `most` of its sides, in the picture's size."""
    from blender.loading.pictures.resizing import in_size

    if not 0 < least <= most <= 1:
        raise InvalidRequest(
            f"Transform `crop` takes `least` {least} to `most` {most} of the sides of a picture. Give shares "
            "above 0 and up to 1, the smaller one first."
        )
    height, width, _ = pixels.shape
    share = generator.uniform(least, most)
    across, down = max(1, round(width * share)), max(1, round(height * share))
    first_column = int(generator.integers(0, width - across + 1))
    first_line = int(generator.integers(0, height - down + 1))
    return in_size(
        pixels[first_line : first_line + down, first_column : first_column + across], width, height
    )


TRANSFORMS: dict[str, Function] = {"crop": crop, "flip": flip}
"""Transforms by name; each takes the pixels, a generator and its parameters."""


def function_of(transform: PictureTransform) -> Function:
    """The function of a transform.

    Raises InvalidRequest for an unknown name, a function that cannot be imported or says that it is not
    deterministic (`function.deterministic = False`), and parameters that it does not take.
    """
    function = TRANSFORMS.get(transform.name)
    if function is None and ":" not in transform.name:
        names = ", ".join(f"`{name}`" for name in sorted(TRANSFORMS))
        raise InvalidRequest(
            f"There is no transform `{transform.name}`. Use {names}, or your own as `module:function`."
        )
    if function is None:
        function = named_function(transform.name, "transform", "pixels, a generator and its parameters")
    if not getattr(function, "deterministic", True):
        raise InvalidRequest(refusal(transform.name))
    try:
        inspect.signature(function).bind(None, None, **transform.parameters)
    except TypeError as error:
        raise InvalidRequest(
            f"Transform `{transform.name}` does not take its parameters ({first_line(error)}). Give those "
            "that its function names after the pixels and the generator."
        ) from error
    if transform.name in TRANSFORMS:  # a wrong parameter is refused before the first step
        apply([(transform, function)], np.zeros((8, 8, 3), np.uint8), 0, 0, 0, 0)
    return function


def apply(
    transforms: Sequence[tuple[PictureTransform, Function]],
    pixels: Pixels,
    seed: int,
    offset: int,
    row: int,
    number: int,
) -> Pixels:
    """The pixels after all transforms, in order; raises InvalidRequest for one that fails."""
    for place, (transform, function) in enumerate(transforms):
        generator = generator_of(seed, offset, row, number, f"{place}:{transform.name}")
        try:
            output: Any = function(pixels, generator, **transform.parameters)
        except FactoryError:
            raise
        except Exception as error:
            raise InvalidRequest(
                f"Transform `{transform.name}` failed on picture {number} of row {row} of step {offset:,} "
                f"({type(error).__name__}: {first_line(error)}). Correct its function."
            ) from error
        if not isinstance(output, np.ndarray) or (output.shape, output.dtype) != (pixels.shape, np.uint8):
            raise InvalidRequest(
                f"Transform `{transform.name}` made {_described(output)} of picture {number} of row {row} of "
                f"step {offset:,}, planned as uint8 of shape {list(pixels.shape)}. Return pixels of the "
                "shape and type that it is given."
            )
        pixels = output
    return pixels


def generator_of(seed: int, offset: int, row: int, number: int, name: str) -> np.random.Generator:
    """The generator of a transform for one picture."""
    digest = hashlib.blake2b(f"{seed}/{offset}/{row}/{number}/{name}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def _described(output: Any) -> str:
    if isinstance(output, np.ndarray):
        return f"{output.dtype} of shape {list(output.shape)}"
    return f"a {type(output).__name__}"
