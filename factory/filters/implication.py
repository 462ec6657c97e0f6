"""When one rule keeps only documents that another keeps, by their declarations alone."""

from __future__ import annotations

from collections.abc import Sequence

from factory.filters.limits import Bottom, Missing, Requirement, Top, bounds
from factory.filters.rule import Rule


def imply_all(ours: Sequence[Rule], theirs: Sequence[Rule]) -> bool:
    """Whether every document that passes all of `ours` passes all of `theirs`."""
    return all(any(implies(strict, loose) for strict in ours) for loose in theirs)


def implies(strict: Rule, loose: Rule) -> bool:
    """Whether every document that passes `strict` passes `loose`: equal rules, one limit inside the other.

    Shares imply nothing, because each round computes its own bounds.
    """
    if isinstance(strict.limit, Top | Bottom) or isinstance(loose.limit, Top | Bottom):
        return False
    if loose.rejects_missing and not strict.rejects_missing:
        return False
    missing: Missing = "reject" if loose.rejects_missing else "keep"
    as_loose = strict.with_limit(Requirement(loose.limit, missing))
    if strict.signals != loose.signals or repr(as_loose) != repr(loose):
        return False
    (low, high), (least, most) = bounds(strict.limit), bounds(loose.limit)
    return low >= least and high <= most
