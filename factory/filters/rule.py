"""Rules and limits: a rule measures one number of a document, its limit says which numbers are allowed.

A rule knows no verdict. Measuring and deciding are separate, so that a limit can change without reading a
text again. The reason for a rejection is the rule's name; which side of the limit failed is data.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any, Literal, Self

from factory import _native
from factory.errors import ConfigurationError
from factory.filters.text import Text


@dataclass(frozen=True)
class AtLeast:
    """Allows values of `low` and more."""

    low: float

    def violated(self, value: float | None) -> float | None:
        """Return the bound that `value` violates, None if it violates none or there is no value."""
        return self.low if value is not None and value < self.low else None

    def __str__(self) -> str:
        return f">= {_number(self.low)}"


@dataclass(frozen=True)
class AtMost:
    """Allows values of `high` and less."""

    high: float

    def violated(self, value: float | None) -> float | None:
        """Return the bound that `value` violates, None if it violates none or there is no value."""
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
        """Return the bound that `value` violates, None if it violates none or there is no value."""
        above = value is not None and value > self.high
        return self.high if above else AtLeast(self.low).violated(value)

    def __str__(self) -> str:
        return f"{_number(self.low)} to {_number(self.high)}"


Limit = AtLeast | AtMost | Between
Kind = Literal["number", "word"]  # the type of a signal: a double or a string


def limit_between(low: float | None, high: float | None) -> Limit:
    """Return the limit with one or both bounds; raises ConfigurationError without any."""
    if low is not None and high is not None:
        return Between(low, high)
    if low is not None:
        return AtLeast(low)
    if high is not None:
        return AtMost(high)
    raise ConfigurationError("A limit has no bound. Give `at_least`, `at_most` or both.")


def bounds(limit: Limit) -> tuple[float, float]:
    """Return the lowest and the highest value that `limit` allows, infinite where it has no bound."""
    match limit:
        case AtLeast(low):
            return float(low), inf
        case AtMost(high):
            return -inf, float(high)
        case Between(low, high):
            return float(low), float(high)


def _number(value: float) -> str:
    return f"{value:,.10g}"


class Rule(ABC):
    """One number of a document, with the limit that says which values pass.

    `name` is the reason for a rejection, `unit` the unit of the number.
    """

    name: str
    unit: str
    limit: Limit

    @property
    def signals(self) -> Mapping[str, Kind]:
        """The columns of the signals table from which the number is computed."""
        return {self.name: "number"}

    def with_limit(self, limit: Limit) -> Self:
        """Return the same rule with another limit."""
        changed = copy.copy(self)
        changed.limit = limit
        return changed

    def __repr__(self) -> str:
        """Return all that decides a verdict: rules with equal signals and repr give equal verdicts."""
        return f"{self.name} {self.limit} {self.unit}"


class TextRule(Rule):
    """A number of the text alone; `name` is its column of the signals table.

    The native signal of that name fills the column, `measure` where there is none. `paper` is where rule and
    limit come from; `example` is a text that fails. A rule `of_bulk` does not apply to a small file of a
    repository, because the number would mean nothing.
    """

    paper: str
    example: str
    of_bulk = False

    @abstractmethod
    def measure(self, text: Text) -> float | None:
        """Return the number, or None where the rule does not apply (and passes).

        A native signal of the same name must equal it on every text.
        """

    @property
    def source(self) -> str | None:
        """A hash of the code that measures it, None for the platform's own, whose files every hash covers.

        It covers the whole file of a rule, because the rule may call any function there, but nothing that the
        file imports; and the attributes of the rule but the limit. Raises ConfigurationError for a rule
        without a file, such as one typed at a prompt.
        """
        module = type(self).__module__
        if module.startswith("factory."):
            return None
        try:
            code = inspect.getsource(sys.modules[module])
        except (OSError, TypeError, KeyError) as error:
            raise ConfigurationError(
                f"The source of rule `{self.name}` cannot be read, so its tables would never become stale. "
                "Define the rule in a file."
            ) from error
        state = sorted((name, repr(value)) for name, value in vars(self).items() if name != "limit")
        return hashlib.sha256(f"{type(self).__qualname__}\n{state}\n{code}".encode()).hexdigest()[:16]

    @property
    def in_python(self) -> bool:
        """Whether `measure` fills the column."""
        return self.name not in _native_names()

    def __repr__(self) -> str:
        source = self.source
        return super().__repr__() + (f", source {source}" if source else "")


def text_rule(
    unit: str, paper: str, limit: Limit, *, example: str, of_bulk: bool = False
) -> Callable[[Callable[[Text], float | None]], TextRule]:
    """Turn a function that measures a text into a rule with the name and docstring of the function."""

    def make(function: Callable[[Text], float | None]) -> TextRule:
        # A class for each rule: its docstring, its attributes and its file are read from `type(rule)`.
        members: dict[str, Any] = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "name": function.__name__,
            "unit": unit,
            "paper": paper,
            "limit": limit,
            "example": example,
            "of_bulk": of_bulk,
            "measure": lambda _, text: function(text),
        }
        kind: type[TextRule] = type(function.__name__, (TextRule,), members)
        return kind()

    return make


@cache
def _native_names() -> frozenset[str]:
    return frozenset(_native.text_signal_names())
