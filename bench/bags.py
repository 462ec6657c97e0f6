"""Documents as bags of weighted tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Bag = tuple[np.ndarray, np.ndarray]  # distinct tokens and their weights


@dataclass(frozen=True)
class Bags:
    """Bag i is `tokens[offsets[i]:offsets[i + 1]]`, with their weights."""

    tokens: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, number: int) -> Bag:
        """(tokens, weights) of one document."""
        part = slice(self.offsets[number], self.offsets[number + 1])
        return self.tokens[part], self.weights[part]


def joined(bags: Sequence[Bag]) -> Bags:
    """Single bags as one `Bags`."""
    tokens, weights = (np.concatenate(column) for column in zip(*bags, strict=True))
    return Bags(tokens, weights, np.cumsum([0, *(len(tokens) for tokens, _ in bags)]))
