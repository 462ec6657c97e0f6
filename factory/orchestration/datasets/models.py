"""The models that a datasets file declares for its rules: each is a table, and a rule of its name."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from factory.errors import ConfigurationError
from factory.filters.examples import Examples
from factory.filters.limits import parse_limit
from factory.filters.rounds import PlainLimit
from factory.filters.rule import Rule
from factory.frozen_model import FrozenModel
from factory.orchestration.chain.models_classifier import classifier_rule


class ClassifierEntry(FrozenModel):
    """A classifier: `positives` against `negatives`, or several `classes`."""

    positives: Examples | None = Field(default=None, description="examples of the class")
    negatives: Examples | None = Field(default=None, description="examples of everything else")
    classes: dict[str, Examples] | None = Field(default=None, description="examples of several classes")
    holdout: float | tuple[str, ...] = Field(
        default=0.2, description="sources kept from training: a share, or globs"
    )
    source: str | None = Field(
        default=None, description="field to split by; default: repository, host or folder"
    )
    limit: PlainLimit | None = Field(
        default=None,
        description="limit of the probability; default: at least .5, of adverts and abuse at most",
    )

    @field_validator("limit", mode="before")
    @classmethod
    def _limit_of_a_probability(cls, limit: Any) -> Any:
        try:
            return parse_limit("limit", limit)
        except ConfigurationError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _two_classes(self) -> ClassifierEntry:
        two = self.positives is not None and self.negatives is not None and self.classes is None
        several = len(self.classes or {}) > 1 and self.positives is None and self.negatives is None
        if not two and not several:
            raise ValueError("Give `positives` and `negatives`, or two or more `classes`.")
        return self

    def rule(self, name: str) -> Rule:
        """The rule of that name."""
        return classifier_rule(name, self.limit, several=self.classes is not None)
