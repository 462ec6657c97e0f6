"""The settings of a dedup group: kind of text, threshold, signature, and who stays among alike documents."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

MAX_DISTINCT = 1 << 20
"""Distinct tokens a bag keeps, those of the smallest hashes: a flood of tokens costs memory no more."""

Priority = Literal["quality", "not_fork", "stars", "recency", "length"]
Similarity = Annotated[float, Field(gt=0, lt=1)]


class Banding(NamedTuple):
    """A signature cut in `bands` bands of `rows` values."""

    rows: int
    bands: int


class DedupConfig(BaseModel):
    """How the documents of a group are compared and which of alike ones stay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["prose", "code"] = Field(description="lexer: Unicode words, or identifiers and numbers")
    threshold: float = Field(
        default=0.8, gt=0, lt=1, description="weighted Jaccard from which documents are similar"
    )
    sweep: tuple[Similarity, ...] = Field(
        default=(0.85, 0.9, 0.95),
        description="other thresholds whose outcome is told and can be taken; below `threshold` they cost",
    )
    values: int = Field(
        default=256, ge=16, le=4096, description="min-hash values a signature, a power of two"
    )
    value_bits: Literal[8] = Field(default=8, description="bits a value")
    seed: int = Field(default=0, ge=0, lt=1 << 64, description="seed of the signatures")
    miss_cost: float = Field(
        default=0.9,
        gt=0,
        lt=1,
        description="cost of a missed pair; a needless candidate costs the rest to one",
    )
    priority: tuple[Priority, ...] = Field(
        default=("quality", "not_fork", "stars", "recency", "length"),
        description="who stays, first things first; a column that documents lack is passed over",
    )
    estimate_sigmas: float = Field(
        default=4, ge=0, description="standard errors below the threshold at which an estimate is thrown away"
    )
    pair_bucket: int = Field(
        default=64, ge=2, description="members up to which all pairs of a bucket are looked at"
    )
    neighbours: int = Field(
        default=16,
        ge=0,
        description="followers of its leader that a member of a larger bucket meets",
    )
    one_task_edges: int = Field(
        default=5_000_000, ge=0, description="edges up to which one task finds all components, in about 1 GB"
    )
    text_documents: int = Field(
        default=10, ge=1, description="documents a token is in from which its text is stored"
    )
    text_bytes: int = Field(default=64, ge=1, description="bytes of the longest token whose text is stored")

    @field_validator("values")
    @classmethod
    def _power_of_two(cls, values: int) -> int:
        if values & (values - 1):
            raise ValueError(f"`values` is {values}: use a power of two, for example 128 or 256")
        return values

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold and those of the sweep, ascending; edges are made for the first."""
        return tuple(sorted({self.threshold, *self.sweep}))

    @property
    def signature_bits(self) -> int:
        """The B of the literature: bits of a signature."""
        return self.values * self.value_bits

    @property
    def banding(self) -> Banding:
        """Rows and bands for the lowest threshold; `banding.rows * value_bits` is the K of the literature."""
        return best_bands(self.thresholds[0], self.values, self.miss_cost)

    def least_estimate(self, threshold: float) -> float:
        """The estimate below which a candidate is not compared exactly."""
        error = math.sqrt(threshold * (1 - threshold) / self.values)
        return max(0.0, threshold - self.estimate_sigmas * error)

    def signature_version(self, vocabulary: str) -> str:
        """What two signatures must share to be comparable; `vocabulary` is the digest of the idf table."""
        return f"lpmh-{self.values}x{self.value_bits}-seed{self.seed}-{self.kind}-{vocabulary}"


def candidate_probability(similarity: float, banding: Banding) -> float:
    """The probability that two documents of this similarity share a bucket."""
    return float(_curve(np.array([similarity]), banding)[0])


@lru_cache
def best_bands(threshold: float, values: int, miss_cost: float = 0.9) -> Banding:
    """The banding of least cost: the curve's area below the threshold, and what it lacks above.

    Candidates are verified, so a miss costs more than a needless candidate; with equal costs the curve
    would find only every other pair at the threshold. Ties take the fewest values.
    """
    similarity = (np.arange(1000) + 0.5) / 1000
    above = similarity >= threshold
    best = (math.inf, Banding(1, 1))
    for rows in range(1, values + 1):
        for bands in range(1, values // rows + 1):
            found = _curve(similarity, Banding(rows, bands))
            needless, missed = found[~above].sum(), (1 - found[above]).sum()
            cost = (1 - miss_cost) * needless + miss_cost * missed
            if cost < best[0]:
                best = (cost, Banding(rows, bands))
    return best[1]


def _curve(similarity: np.ndarray, banding: Banding) -> np.ndarray:
    agreement = similarity + (1 - similarity) / 256  # two 8-bit values agree by chance once in 256
    return 1 - (1 - agreement**banding.rows) ** banding.bands
