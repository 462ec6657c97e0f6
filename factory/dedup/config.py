"""The settings of a dedup group: kind of text, threshold, signature, and who stays among alike documents."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from factory.dedup.banding import Banding, agreement, best_bands

MAX_DISTINCT = 1 << 20
"""Distinct tokens a bag keeps, those of the smallest hashes: a flood of tokens costs memory no more."""

Priority = Literal["quality", "not_fork", "stars", "recency", "length"]
Keep = Literal["independent_set", "one_per_component", "cover"]
LEAST_THRESHOLD = 0.3
"""Below, bands are so short that unlike documents meet: at .2 half of all pairs with a tenth in common."""

Similarity = Annotated[float, Field(ge=LEAST_THRESHOLD, lt=1)]


class DedupConfig(BaseModel):
    """How the documents of a group are compared and which of alike ones stay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["prose", "code"] = Field(description="lexer: Unicode words, or identifiers and numbers")
    tokens: Literal["words", "cl100k_base"] = Field(
        default="words", description="what prose is cut in: words, or the tokens of a pre-trained tokenizer"
    )
    shingle: int = Field(default=1, ge=1, le=16, description="words or tokens in a row that make one")
    threshold: Similarity = Field(
        default=0.8, description="weighted Jaccard from which documents are similar"
    )
    sweep: tuple[Similarity, ...] = Field(
        default=(0.85, 0.9, 0.95),
        max_length=32,  # a large bucket has leaders for each
        description="other thresholds whose outcome is told and can be taken; below `threshold` they cost",
    )
    scheme: Literal["lpmh", "cell_oph"] = Field(
        default="lpmh", description="how signatures are made: for any weights, or faster for damped ones"
    )
    values: int = Field(
        default=256, ge=16, le=4096, description="min-hash values a signature, a power of two"
    )
    value_bits: Literal[1, 2, 4, 8, 16] = Field(default=8, description="bits a value")
    band_bits: int | None = Field(
        default=None,
        ge=1,
        description="bits a band, the K of the literature; else those best for the threshold",
    )
    seed: int = Field(default=0, ge=0, lt=1 << 64, description="seed of the signatures")
    miss_cost: float = Field(
        default=0.995,
        gt=0,
        lt=1,
        description="cost of a missed pair; a needless candidate costs the rest to one",
    )
    priority: tuple[Priority, ...] = Field(
        default=("quality", "not_fork", "stars", "recency", "length"),
        description="who stays, first things first; a column that documents lack is passed over",
    )
    keep: Keep = Field(
        default="independent_set",
        description="none of two similar documents, the best of each component, or a greedy vertex cover",
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
    removed_alarm: float = Field(
        default=0.5, ge=0, le=1, description="share of a dataset's documents above which their loss alarms"
    )
    recall_sample: int = Field(
        default=256, ge=1, description="documents compared with all others to measure what banding finds"
    )
    recount_growth: float = Field(
        default=2,
        ge=1,
        description="growth of the group up to which `--changed` keeps its vocabulary; 1 never keeps it",
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

    @model_validator(mode="after")
    def _tokenizer_of_prose(self) -> Self:
        if self.kind == "code" and self.tokens != "words":
            raise ValueError(
                f"`tokens` is {self.tokens}, and code has a lexer of its own. Leave it out, or let the group "
                "be of prose."
            )
        return self

    @model_validator(mode="after")
    def _whole_values_a_band(self) -> Self:
        if self.band_bits and (self.band_bits % self.value_bits or self.band_bits > self.signature_bits):
            raise ValueError(
                f"`band_bits` is {self.band_bits}: use a multiple of the {self.value_bits} bits of a value, "
                f"at most the {self.signature_bits} of a signature"
            )
        return self

    def changed(self, **options: object) -> Self:
        """These settings with other values of some; raises ValidationError as they do."""
        return type(self).model_validate(self.model_dump() | options)

    @property
    def lexer(self) -> str:
        """The native lexer's name."""
        words = self.kind if self.tokens == "words" else self.tokens
        return words if self.shingle == 1 else f"{words}-{self.shingle}grams"

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
        """Rows and bands: of `band_bits` bits where given, else those best for the lowest threshold."""
        if self.band_bits:
            return Banding(self.band_bits // self.value_bits, self.signature_bits // self.band_bits)
        return best_bands(self.thresholds[0], self.values, self.miss_cost, self.value_bits)

    def least_estimate(self, threshold: float) -> float:
        """The estimate below which a candidate is not compared exactly."""
        agree = agreement(threshold, self.value_bits)
        error = math.sqrt(agree * (1 - agree) / self.values) / (1 - 2.0**-self.value_bits)
        return max(0.0, threshold - self.estimate_sigmas * error)

    def signature_version(self, vocabulary: str) -> str:
        """What two signatures must share to be comparable; `vocabulary` is the digest of the idf table."""
        signed = f"{self.scheme}-{self.values}x{self.value_bits}-seed{self.seed}"
        return f"{signed}-{self.lexer}-{vocabulary}"
