"""Rules: a rule measures one number of a document, its limit says which numbers are allowed.

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
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, Self

from factory import _native
from factory.errors import ConfigurationError
from factory.filters.limits import Bottom, Bounds, Limit, Missing, Requirement, Top, limit_values
from factory.filters.text import Text
from factory.lake.names import TableName

Kind = Literal["number", "word"]  # the type of a signal: a double or a string


class Rule(ABC):
    """One number of a document, with the limit that says which values pass.

    `name` is the reason for a rejection, `unit` the unit of the number. `reads` are further tables that the
    rule needs, by their role. `missing_policy` applies to documents without a value; None leaves it to
    `missing_by_default`. `ceiling` names the signal that holds a document's own highest value, if each
    document has a limit of its own.
    """

    name: str
    unit: str
    limit: Limit
    missing_policy: Missing | None = None
    reads: Mapping[str, TableName] = MappingProxyType({})
    ceiling: str | None = None

    @property
    def part(self) -> str:
        """The part of the signals with its values: one part for all rules that read documents alone, "".

        A rule that reads tables has a part of its own, which is measured again when they change.
        """
        return self.name if self.reads else ""

    @property
    def signals(self) -> Mapping[str, Kind]:
        """The columns of the signals table that give the number."""
        return {self.name: "number"}

    @property
    def expression(self) -> str:
        """The number, as a Spark expression over these columns; null where there is none."""
        return f"`{self.name}`"

    @property
    def bounds(self) -> Bounds:
        """Its limit; raises ConfigurationError for a share: `factory.filters.shares` finds the bound."""
        if isinstance(self.limit, Top | Bottom):
            raise ConfigurationError(
                f"The limit of `{self.name}` is {self.limit} of the documents. Find its bound first, by "
                "`factory.filters.shares`."
            )
        return self.limit

    @property
    def missing_by_default(self) -> Missing:
        """The policy for documents without a value if none is given: a rule that does not apply passes.

        A share rejects it: the best tenth of the documents would otherwise be that tenth and all that were
        not measured.
        """
        return "reject" if isinstance(self.limit, Top | Bottom) else "keep"

    @property
    def rejects_missing(self) -> bool:
        """Whether a document without a value is rejected."""
        return (self.missing_policy or self.missing_by_default) == "reject"

    def with_limit(self, limit: Limit | Requirement) -> Self:
        """Return the same rule with another limit, and with the policy for missing values if that has one."""
        changed = copy.copy(self)
        if isinstance(limit, Requirement):
            changed.missing_policy = limit.missing
        else:
            changed.limit = limit
        if isinstance(limit, Requirement) and limit.limit is not None:
            changed.limit = limit.limit
        return changed

    def with_missing(self, missing: Missing) -> Self:
        """Return the same rule with another policy for documents without a value."""
        return self.with_limit(Requirement(None, missing))

    def of_dataset(self, _dataset: str) -> Self:
        """Return the rule as it judges a dataset; a predicate on facts reads the dataset's facts."""
        return self

    @property
    def source(self) -> str | None:
        """A hash of the code that measures it; None for the platform's rules, which every hash covers.

        It covers the whole file of a rule, because the rule may call any function there, but nothing that the
        file imports; and the attributes of the rule but `limit` and `missing_policy`. Raises
        ConfigurationError for a rule without a file, such as one typed at a prompt.
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
        of_verdict = {"limit", "missing_policy"}  # attributes that change no value
        state = sorted((name, repr(value)) for name, value in vars(self).items() if name not in of_verdict)
        return hashlib.sha256(f"{type(self).__qualname__}\n{state}\n{code}".encode()).hexdigest()[:16]

    def as_values(self) -> dict[str, Any]:
        """Return all that decides a verdict, as values of JSON by name."""
        reads = {role: str(table) for role, table in sorted(self.reads.items())}
        return {
            "name": self.name,
            "limit": limit_values(self.limit),
            "missing": "reject" if self.rejects_missing else "keep",
            "unit": self.unit,
            "reads": reads,
            "source": self.source,
        }

    def __repr__(self) -> str:
        """Return all that decides a verdict: rules with equal signals and repr give equal verdicts."""
        read = "".join(f", {role} {table}" for role, table in sorted(self.reads.items()))
        source = f", source {self.source}" if self.source else ""
        return f"{self.name} {self.limit} {self.unit}{read}{source}{self.missing_phrase}"

    @property
    def missing_phrase(self) -> str:
        """The part of `repr` about documents without a value, empty where they pass."""
        return ", which a document without a value fails" if self.rejects_missing else ""


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
        """Return the number, or None where the rule does not apply, and passes unless its policy rejects.

        A native signal of the same name must equal it on every text.
        """

    @property
    def in_python(self) -> bool:
        """Whether `measure` fills the column."""
        return self.name not in _native_names()


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
