"""The settings of a dedup group.

Each table depends on a part of them, which the module of the table declares: `EdgeConfig` in `edges`. The
function that makes the table is given its part alone, and the asset's `factory.config` hash covers this part,
so a setting that does not decide the rows of a table cannot make it stale.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, Field, field_validator, model_validator

from factory.dedup.banding import Banding, SignatureSize, best_bands
from factory.dedup.decisions import Keep
from factory.dedup.priority import Priority
from factory.dedup.signatures import Scheme
from factory.frozen_model import FrozenModel

MIN_THRESHOLD = 0.3
"""Below this, bands are so short that half of all pairs sharing a tenth of their tokens become candidates."""


def _similarity(value: float) -> float:
    if MIN_THRESHOLD <= value < 1:
        return value
    remedy = f"Use at least {MIN_THRESHOLD} and less than 1."
    if MIN_THRESHOLD <= value / 100 < 1:
        remedy = f"Write {value / 100:g} for {value:g} %."
    raise ValueError(f"Threshold {value:g} is out of range. {remedy}")


Similarity = Annotated[float, AfterValidator(_similarity)]
"""A weighted Jaccard similarity by which documents are similar, below 1."""

M = TypeVar("M", bound=BaseModel)


class DedupConfig(FrozenModel):
    """How the documents of a group are compared, and which of several similar documents stays."""

    kind: Literal["prose", "code"] = Field(description="lexer: Unicode words, or identifiers and numbers")
    tokens: Literal["words", "cl100k_base"] = Field(
        default="words",
        description="tokens of prose: words, or a published tokenizer's for words of ASCII",
    )
    shingle: int = Field(
        default=1, ge=1, le=16, description="consecutive words or tokens that make one token"
    )
    threshold: Similarity = Field(default=0.8, description="least weighted Jaccard of similar documents")
    sweep: tuple[Similarity, ...] = Field(
        default=(0.85, 0.9, 0.95),
        max_length=32,  # a large bucket has leaders for each
        description="further thresholds to report and to choose from; lower ones than `threshold` cost time",
    )
    scheme: Scheme = Field(
        default="lpmh", description="min-hash scheme: for any weights, or faster for damped weights"
    )
    values: int = Field(
        default=256, ge=16, le=4096, description="min-hash values per signature, a power of two"
    )
    value_bits: Literal[1, 2, 4, 8, 16] = Field(default=8, description="bits per value")
    band_bits: int | None = Field(
        default=None,
        ge=1,
        description="bits per band, K in the literature; by default the best for the threshold",
    )
    seed: int = Field(default=0, ge=0, lt=1 << 64, description="seed of the signatures")
    miss_cost: float = Field(
        default=0.995,
        gt=0,
        lt=1,
        description="cost of a missed pair; a needless candidate costs 1 - `miss_cost`",
    )
    priority: tuple[Priority, ...] = Field(
        default=("quality", "not_fork", "stars", "recency", "length"),
        description="criteria for which document stays, most important first; missing columns are skipped",
    )
    keep: Keep = Field(
        default="independent_set",
        description="keep no two similar documents, the best of each component, or a greedy vertex cover",
    )
    removed_alarm: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="removed share of a dataset's documents above which a check warns",
    )
    recount_growth: float = Field(
        default=2,
        ge=1,
        description="growth of the group up to which `--changed` keeps its vocabulary; 1 never keeps it",
    )

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
                f"`tokens` is {self.tokens}, and code has a lexer of its own. Leave it out, or make this a "
                "group of prose."
            )
        return self

    @model_validator(mode="after")
    def _whole_values_per_band(self) -> Self:
        if self.band_bits and (self.band_bits % self.value_bits or self.band_bits > self.size.bits):
            raise ValueError(
                f"`band_bits` is {self.band_bits}: use a multiple of the {self.value_bits} bits of a value, "
                f"at most the {self.size.bits} of a signature"
            )
        return self

    def changed(self, **options: object) -> Self:
        """These settings with other values for `options`; raises ValidationError for wrong ones."""
        return type(self).model_validate(self.model_dump() | options)

    @property
    def lexer(self) -> str:
        """The native lexer's name, which alone decides the bags and the vocabulary."""
        words = self.kind if self.tokens == "words" else self.tokens
        return words if self.shingle == 1 else f"{words}-{self.shingle}grams"

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The threshold and the sweep, ascending; edges reach the first."""
        return tuple(sorted({self.threshold, *self.sweep}))

    @property
    def deciding(self) -> tuple[float, ...]:
        """The thresholds at which the group or a variant may decide; the default sweep is a report."""
        return self.thresholds if "sweep" in self.model_fields_set else (self.threshold,)

    @property
    def size(self) -> SignatureSize:
        """Values and bits of a signature."""
        return SignatureSize(self.values, self.value_bits)

    @property
    def banding(self) -> Banding:
        """Rows and bands: from `band_bits` if given, else the best for the lowest threshold."""
        if self.band_bits:
            return Banding(self.band_bits // self.value_bits, self.size.bits // self.band_bits)
        return best_bands(self.thresholds[0], self.values, self.miss_cost, self.value_bits)

    def part(self, of: type[M]) -> M:
        """The settings that one table depends on, such as `EdgeConfig`."""
        return of.model_validate({name: getattr(self, name) for name in of.model_fields})
