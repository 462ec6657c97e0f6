"""Limits: which values of a rule pass.

A limit has one or two bounds, or it is a share of a dataset's documents, and a run finds its bound once
(`factory.filters.shares`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isinf, isnan
from typing import Literal, get_args

from factory.errors import ConfigurationError


@dataclass(frozen=True)
class AtLeast:
    """Allows values of `low` and more."""

    low: float

    def violated(self, value: float | None) -> float | None:
        """Return the bound that `value` violates, if any; None without a value."""
        return self.low if value is not None and value < self.low else None

    def __str__(self) -> str:
        return f">= {_number(self.low)}"


@dataclass(frozen=True)
class AtMost:
    """Allows values of `high` and less."""

    high: float

    def violated(self, value: float | None) -> float | None:
        """Return the bound that `value` violates, if any; None without a value."""
        return self.high if value is not None and value > self.high else None

    def __str__(self) -> str:
        return f"<= {_number(self.high)}"


@dataclass(frozen=True)
class Between:
    """Allows values from `low` to `high`, both included."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ConfigurationError(
                f"No value lies between {_number(self.low)} and {_number(self.high)}. "
                "Give the lower bound first."
            )

    def violated(self, value: float | None) -> float | None:
        """Return the bound that `value` violates, if any; None without a value."""
        above = value is not None and value > self.high
        return self.high if above else AtLeast(self.low).violated(value)

    def __str__(self) -> str:
        return f"{_number(self.low)} to {_number(self.high)}"


@dataclass(frozen=True)
class Top:
    """Allows the share of the documents that have the greatest values, such as 0.1 for a tenth."""

    share: float

    def __post_init__(self) -> None:
        _require_share(self.share)

    def at_bound(self, bound: float) -> Bounds:
        """Return the limit; `bound` is the least value in this share."""
        return AtLeast(bound)

    def __str__(self) -> str:
        return f"the top {_number(100 * self.share)} %"


@dataclass(frozen=True)
class Bottom:
    """Allows the share of the documents that have the least values."""

    share: float

    def __post_init__(self) -> None:
        _require_share(self.share)

    def at_bound(self, bound: float) -> Bounds:
        """Return the limit; `bound` is the greatest value in this share."""
        return AtMost(bound)

    def __str__(self) -> str:
        return f"the bottom {_number(100 * self.share)} %"


Bounds = AtLeast | AtMost | Between
Share = Top | Bottom
Limit = Bounds | Share
Missing = Literal["keep", "reject"]
"""Policy for documents without a value."""


@dataclass(frozen=True)
class Requirement:
    """A limit and the policy for documents without a value; a limit of None is the rule's own."""

    limit: Limit | None
    missing: Missing


def asks_for_value(limit: Limit) -> bool:
    """Return whether a document has to show a value to pass: a lower bound, or a share of the documents.

    An upper bound alone only excludes, so a document that shows nothing passes.
    """
    return not isinstance(limit, AtMost)


def parse_missing(name: str, plain: object) -> Missing:
    """Return the plain value of `missing`; raises ConfigurationError for another word."""
    if plain not in get_args(Missing):
        raise ConfigurationError(
            f"`missing` of `{name}` is {plain!r}. Give `keep` or `reject`, the policy for documents "
            "without a value."
        )
    return "keep" if plain == "keep" else "reject"


def parse_requirement(name: str, plain: object, default: Limit | None = None) -> Limit | Requirement:
    """Return the limit that a plain value means, with its `missing` if it has one, which may stand alone.

    Raises ConfigurationError as `parse_limit` does.
    """
    if isinstance(plain, Requirement):
        return plain
    if not isinstance(plain, Mapping) or "missing" not in plain:
        return parse_limit(name, plain, default)
    missing = parse_missing(name, plain["missing"])
    bounds_alone = {key: bound for key, bound in plain.items() if key != "missing"}
    return Requirement(parse_limit(name, bounds_alone, default) if bounds_alone else None, missing)


def limit_between(low: float | None, high: float | None) -> Bounds:
    """Return the limit with one or both bounds; raises ConfigurationError without any."""
    if low is not None and high is not None:
        return Between(low, high)
    if low is not None:
        return AtLeast(low)
    if high is not None:
        return AtMost(high)
    raise ConfigurationError("A limit has no bound. Give `at_least`, `at_most` or both.")


def parse_limit(name: str, plain: object, default: Limit | None = None) -> Limit:
    """Return the limit that a plain value means: the one bound of `default`, two bounds, or a share.

    Raises ConfigurationError, which names the rule `name`, for another value and for NaN: no value is above
    or below NaN, so every document would pass.
    """
    match plain:
        case AtLeast() | AtMost() | Between() | Top() | Bottom():
            return plain
        case int() | float() if _is_number(plain) and default is not None:
            return _one_bound(name, float(plain), default)
        case [int() | float() as low, int() | float() as high] if _is_number(low) and _is_number(high):
            return Between(float(low), float(high))
        case Mapping() if plain.keys() <= {"at_least", "at_most"} and any(map(_is_number, plain.values())):
            bounds = [plain.get("at_least"), plain.get("at_most")]
            if all(bound is None or _is_number(bound) for bound in bounds):
                return limit_between(*bounds)
        case {"top": int() | float() as share, **others} if not others and _is_number(share):
            return Top(float(share))
        case {"bottom": int() | float() as share, **others} if not others and _is_number(share):
            return Bottom(float(share))
    raise ConfigurationError(
        f"The limit of `{name}` is {plain!r}. Give a number, a list of the lowest and the highest value, "
        "`at_least` and `at_most`, or a share of the documents, `top` or `bottom`."
    )


def _is_number(plain: object) -> bool:
    return isinstance(plain, int | float) and not isinstance(plain, bool) and not isnan(plain)


def _one_bound(name: str, bound: float, default: Limit) -> Limit:
    if isinstance(default, AtLeast | AtMost):
        return type(default)(bound)
    if isinstance(default, Top | Bottom):
        raise ConfigurationError(
            f"The limit of `{name}` is {bound:g}, and that of its model is {default}, so its side is "
            "unclear. Give `at_least` or `at_most`."
        )
    raise ConfigurationError(
        f"The limit of `{name}` is {bound:g}, but the rule has two bounds ({default}). "
        "Give a list of the lowest and the highest value, or `at_least` or `at_most` alone."
    )


def bounds(limit: Bounds) -> tuple[float, float]:
    """Return the lowest and the highest value that `limit` allows, infinite where it has no bound."""
    match limit:
        case AtLeast(low):
            return float(low), inf
        case AtMost(high):
            return -inf, float(high)
        case Between(low, high):
            return float(low), float(high)


def limit_values(limit: Limit) -> str | list[float | None]:
    """Return a limit as values of JSON: its two bounds, None where it has none, or the phrase of a share."""
    if isinstance(limit, Top | Bottom):
        return str(limit)
    return [None if isinf(bound) else int(bound) if bound == int(bound) else bound for bound in bounds(limit)]


def _require_share(share: float) -> None:
    if not 0 < share < 1:
        raise ConfigurationError(
            f"A share of {_number(share)} of the documents is none or all of them. Give one between 0 and 1, "
            "such as 0.1."
        )


def _number(value: float) -> str:
    return f"{value:,.10g}"
