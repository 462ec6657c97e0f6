"""Steps of drawn rows, without a blend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blender.loading.columns import StepColumns, with_images
from blender.loading.image_input import ImageInput
from blender.loading.image_plan import StepImages


def step_of(lengths: Sequence[Sequence[int]], sources: int = 1) -> StepColumns:
    """A step whose rows hold documents of these lengths, dealt to sources in turn."""
    n = len(lengths)
    return StepColumns(
        blend="0" * 32,
        offset=5,
        sources=tuple(f"packed.s{number}" for number in range(sources)),
        source=np.arange(n) % sources,
        epoch=np.zeros(n, dtype=np.int64),
        ordinal=np.arange(n) // sources,
        facts={
            "n_tokens": np.array([sum(row) for row in lengths], dtype=np.uint64),
            "squared_lengths": np.array([sum(n * n for n in row) for row in lengths], dtype=np.uint64),
        },
    )


IMAGE_INPUT = ImageInput(patch=10, merge=1, most_patches=10_000)


def image_step_of(
    pictures: Sequence[Sequence[tuple[int, int]]], words: int = 5, sources: int = 1
) -> StepColumns:
    """A step with a row of `words` tokens for each list of pictures, whose sizes are in patches."""
    row = [number for number, sizes in enumerate(pictures) for _ in sizes]
    number = [place for sizes in pictures for place in range(len(sizes))]
    width, height = np.array([size for sizes in pictures for size in sizes], dtype=np.int64).reshape(-1, 2).T
    step = step_of([[words + len(sizes)] for sizes in pictures], sources)
    ints = (np.array(column, dtype=np.int64) for column in (row, number))
    return with_images(step, StepImages(*ints, width * 10, height * 10), IMAGE_INPUT)
