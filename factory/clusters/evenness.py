"""How even a distribution is: entropy, effective number of categories, share of the largest hundredth."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def entropy(counts: npt.ArrayLike) -> float:
    """Return the entropy in bits of documents by category (Shannon, 1948); 0 without documents."""
    numbers = _positive(counts)
    shares = numbers / max(numbers.sum(), 1.0)
    return float(-(shares * np.log2(shares)).sum()) + 0.0  # no negative zero


def effective_number(counts: npt.ArrayLike) -> float:
    """Return the number of equal categories with the same entropy: 2 ** entropy (Hill, 1973, order 1)."""
    return 2 ** entropy(counts)


def share_of_largest(counts: npt.ArrayLike, share: float = 0.01) -> float:
    """Return the documents' share in the largest `share` of the categories, at least in one category."""
    numbers = np.sort(np.asarray(counts, dtype=np.float64))[::-1]
    largest = numbers[: math.ceil(share * len(numbers))]
    return float(largest.sum() / max(numbers.sum(), 1.0))


def _positive(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    numbers = np.asarray(counts, dtype=np.float64)
    return numbers[numbers > 0]
