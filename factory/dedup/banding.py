"""How to cut a signature into bands: the rows and bands of least cost for a target similarity.

Two documents of similarity s agree in a value of c bits with probability p = s + (1 - s) / 2^c, and share a
bucket with probability 1 - (1 - p^rows)^bands. The area under this curve below the threshold is needless
candidates; the area above the curve beyond the threshold is missed pairs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

ESTIMATE_SIGMAS = 4
"""Standard errors below the threshold at which an estimate rules a pair out: that loses one in 30,000."""


class Banding(NamedTuple):
    """A signature cut into `bands` bands of `rows` values."""

    rows: int
    bands: int


class SignatureSize(NamedTuple):
    """A signature of `values` values of `value_bits` bits."""

    values: int
    value_bits: int

    @property
    def bits(self) -> int:
        """Bits of a signature, B in the literature."""
        return self.values * self.value_bits

    def least_estimate(self, threshold: float) -> float:
        """The estimate below which a candidate is not compared exactly."""
        agree = agreement(threshold, self.value_bits)
        error = math.sqrt(agree * (1 - agree) / self.values) / (1 - 2.0**-self.value_bits)
        return max(0.0, threshold - ESTIMATE_SIGMAS * error)


def candidate_probability(similarity: float, banding: Banding, value_bits: int = 8) -> float:
    """The probability that two documents of this similarity share a bucket."""
    return float(_curve(np.array([similarity]), banding, value_bits)[0])


@lru_cache
def best_bands(threshold: float, values: int, miss_cost: float = 0.995, value_bits: int = 8) -> Banding:
    """The banding of least cost: the area under the curve below the threshold, plus the area above it beyond.

    Candidates are verified, so a miss costs more than a needless candidate; with equal costs the curve
    would find only every other pair at the threshold. Among equal costs the banding of fewest values wins.
    """
    similarity = (np.arange(1000) + 0.5) / 1000
    above = similarity >= threshold
    best = (math.inf, Banding(1, 1))
    for rows in range(1, values + 1):
        for bands in range(1, values // rows + 1):
            found = _curve(similarity, Banding(rows, bands), value_bits)
            needless, missed = found[~above].sum(), (1 - found[above]).sum()
            cost = (1 - miss_cost) * needless + miss_cost * missed
            if cost < best[0]:
                best = (cost, Banding(rows, bands))
    return best[1]


def agreement(similarity: np.ndarray | float, value_bits: int) -> np.ndarray | float:
    """The share of values in which documents of this similarity agree, chance included."""
    return similarity + (1 - similarity) / 2**value_bits


def _curve(similarity: np.ndarray, banding: Banding, value_bits: int) -> np.ndarray:
    return np.asarray(1 - (1 - agreement(similarity, value_bits) ** banding.rows) ** banding.bands)
