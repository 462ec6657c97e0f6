"""The rule that reads a classifier, apart from its asset: checks of a datasets file import no Dagster."""

from __future__ import annotations

from collections.abc import Sequence

from factory.filters.limits import AtLeast, AtMost, Limit
from factory.filters.rules.classified import Category, ClassifierScore

_LIMITS: dict[str, Limit] = {"advertisement": AtMost(0.5), "abuse": AtMost(0.5)}  # positives are unwanted


def classifier_rule(name: str, limit: Limit | None, classes: Sequence[str]) -> ClassifierScore | Category:
    """Return the rule that reads a classifier in a round: of two classes, or of several `classes`."""
    if classes:
        return Category(name, limit=limit, classes=classes)
    return ClassifierScore(name, limit or _LIMITS.get(name, AtLeast(0.5)))
