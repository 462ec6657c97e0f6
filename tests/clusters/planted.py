"""Random unit vectors around planted centers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Return rows at length one."""
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def vectors_around_centers(
    n: int, k: int, dimensions: int = 16, spread: float = 0.1, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return `n` vectors around `k` random centers, and the center of each."""
    chance = np.random.default_rng(seed)
    centers = unit(chance.standard_normal((k, dimensions)))
    labels = chance.integers(0, k, n)
    return unit(centers[labels] + spread * chance.standard_normal((n, dimensions))), labels
