"""How uneven microbatches of images and text are, by the lengths of documents and the context, from FLOPs.

Sequences of one microbatch hold pairs of a text and an image, until the context is full; four patches are a
token of the backbone. MegaScale-Data, Figure 3, observed on 8 GPUs that the largest microbatch has 3.2 times
the FLOPs of the smallest for images and 6.9 times for sequences, on data that it does not give.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import Protocol

import numpy as np
from rich.console import Console

from bench.harness import Report, Row, table
from bench.loading.images import ENCODER
from blender.loading.costs import Backbone

BACKBONE = Backbone(hidden=4_608, layers=45)
CONTEXTS = (4_096, 8_192, 16_384)
MICROBATCHES = 72  # of a step: 9 data parallel ranks with 8 each
SEEDS = range(4)
PATCHES_PER_TOKEN = 4
MOST_PATCHES = 16_384
PAPER_IMAGES, PAPER_SEQUENCES = 3.2, 6.9
DATA = f"`laws`: pairs of text and image of drawn lengths, {MICROBATCHES} microbatches"
CAVEATS = (
    "`laws`: computed from FLOPs of drawn lengths. The paper's 3.2x and 6.9x are of its own data, which it "
    "does not give: the table shows what the lengths decide, and no aim.",
)


class Lengths(Protocol):
    """Pairs of a text and an image."""

    def draw(self, random: np.random.Generator) -> tuple[int, int]:
        """The tokens and the patches of a pair."""


@dataclass(frozen=True)
class Law:
    """The lognormal laws of texts, in tokens, and images, in patches."""

    mean_text: float
    spread_text: float
    most_text: int
    mean_image: float
    spread_image: float

    def draw(self, random: np.random.Generator) -> tuple[int, int]:
        """The tokens and the patches of a pair."""
        text = min(self.most_text, max(4, int(random.lognormal(self.mean_text, self.spread_text))))
        return text, max(64, int(random.lognormal(self.mean_image, self.spread_image)))


@dataclass(frozen=True)
class ObservedPairs:
    """Pairs that were counted, each drawn as often as any other."""

    texts: np.ndarray
    """Tokens; shape [pairs]."""
    patches: np.ndarray

    def draw(self, random: np.random.Generator) -> tuple[int, int]:
        """The tokens and the patches of a pair."""
        number = random.integers(len(self.texts))
        return int(self.texts[number]), int(self.patches[number])


LAWS = {
    "captions (COYO)": Law(3.2, 0.6, 2_048, 6.6, 1.0),
    "any resolution (NaViT)": Law(4.6, 1.3, 8_192, 6.2, 1.3),
}


def measure(progress: Console) -> Report:
    """Draw microbatches by each law and context."""
    report = Report(CAVEATS, DATA)
    progress.print("drawing sequences of texts and images")
    shown = table(
        "FLOPs of the largest microbatch over the smallest", "lengths | context | images | sequences"
    )
    for name, law in LAWS.items():
        for context in CONTEXTS:
            steps = [flops(law, context, np.random.default_rng(seed)) for seed in SEEDS]
            images, sequences = (
                mean(float(costs.max() / costs.min()) for costs in some) for some in zip(*steps, strict=True)
            )
            shown.add_row(name, f"{context:,}", f"{images:.1f}x", f"{sequences:.2f}x")
            label = f"loading.laws.{name.split()[0]}.{context}"
            report.rows += [
                Row(f"{label}.images", round(images, 3), "ratio"),
                Row(f"{label}.sequences", round(sequences, 3), "ratio"),
            ]
    shown.add_row("the paper", "", f"{PAPER_IMAGES}x", f"{PAPER_SEQUENCES}x")
    report.tables.append(shown)
    return report


def flops(pairs: Lengths, context: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The costs of the images and of the sequence of each microbatch of a step."""
    microbatches = [sequence(pairs, context, random) for _ in range(MICROBATCHES)]
    images = [int(ENCODER({"n_patches": patches}).sum()) for patches, _ in microbatches]
    facts = {
        "n_tokens": np.array([lengths.sum() for _, lengths in microbatches]),
        "squared_lengths": np.array([(lengths**2).sum() for _, lengths in microbatches]),
    }
    return np.array(images), BACKBONE(facts)


def sequence(pairs: Lengths, context: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Patches of each image of a sequence, and tokens of each pair, up to the first pair that does not fit.

    A first pair above the context is cut: its text first, then its image.
    """
    patches: list[int] = []
    lengths: list[int] = []
    left = context
    while True:
        text, image = pairs.draw(random)
        image = min(MOST_PATCHES, image)
        if not lengths:
            text = min(text, left - 64 // PATCHES_PER_TOKEN)
            image = min(image, (left - text) * PATCHES_PER_TOKEN)
        length = text + -(-image // PATCHES_PER_TOKEN)
        if length > left:
            return np.array(patches, dtype=np.uint64), np.array(lengths, dtype=np.uint64)
        patches.append(image)
        lengths.append(length)
        left -= length
