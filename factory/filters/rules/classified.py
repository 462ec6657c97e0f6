"""Rules by a classifier, `models.<name>`: the probability of a class, or the likeliest of several.

    ClassifierScore("advertisement", AtMost(0.5))
    Category("category", ["reference", "forum"])    # documents of other classes are rejected

A text of fewer than 50 words has no value, because a probability would mean nothing. It is not shown to be
good, so a lower bound, a share or a list of wanted classes rejects it; nor is it shown to be bad, so an upper
bound or a list of unwanted classes keeps it. `missing` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, Limit, Missing, asks_for_value
from factory.filters.metadata import Condition, split_missing, word_lists
from factory.filters.rule import Kind
from factory.filters.table_rule import Measurer, TableRule
from factory.lake import names
from factory.models.arrow_stream import arrow_stream
from factory.models.classifier import LEAST_TOKENS
from factory.suggestions import unknown_name
from spark_udfs.models import classifier as udf

Words = Iterable[str | None]
_ANY = AtLeast(1e-9)  # the limit of a category: a wanted class passes, however unsure


class ClassifierScore(TableRule):
    """Probability that the text belongs to the class of a classifier."""

    unit = "probability"

    def __init__(self, name: str, limit: Limit) -> None:
        self.name, self.limit = name, limit
        self.reads = {"classifier": names.model(name)}

    @property
    def missing_by_default(self) -> Missing:
        return "reject" if asks_for_value(self.limit) else "keep"

    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        model = arrow_stream(tables["classifier"])
        return partial(udf.probability, classifier=model, name=self.name, least_tokens=LEAST_TOKENS)


class Category(TableRule):
    """Share of the likeliest class among all probabilities; 0 for an unwanted class, if any are words.

    `wanted` are the classes that may stay, all if it is empty; `unwanted` classes may not. `classes` are the
    classifier's, if known. By default a wanted class passes at any probability.
    """

    unit = "probability"

    def __init__(
        self,
        name: str,
        wanted: Words = (),
        unwanted: Words = (),
        *,
        limit: Limit | None = None,
        classes: Sequence[str] = (),
    ) -> None:
        self.name, self.limit, self.classes = name, limit or _ANY, classes
        self.wanted, self.unwanted = _words(name, wanted, classes), _words(name, unwanted, classes)
        self.reads = {"classifier": names.model(name)}

    def among(self, condition: Condition) -> Category:
        """Return the rule with the classes of a condition: a list, or `one_of` and `none_of`.

        Raises ConfigurationError for an unknown class.
        """
        condition, missing = split_missing(self.name, condition)
        words = word_lists(self.name, condition)
        rule = Category(self.name, *words, limit=self.limit, classes=self.classes)
        rule.missing_policy = missing or self.missing_policy
        return rule

    @property
    def missing_by_default(self) -> Missing:
        asks = bool(self.wanted) or (self.limit != _ANY and asks_for_value(self.limit))
        return "reject" if asks else "keep"

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {self.name: "word", f"{self.name}_score": "number"}

    @property
    def expression(self) -> str:
        label, score = self.signals
        conditions = [f"{label} IN ({_quoted(self.wanted)})"] if self.wanted else []
        conditions += [f"{label} NOT IN ({_quoted(self.unwanted)})"] if self.unwanted else []
        if not conditions:
            return score
        return f"CASE WHEN {label} IS NULL OR ({' AND '.join(conditions)}) THEN {score} ELSE 0 END"

    def measurer(self, tables: Mapping[str, DataFrame]) -> Measurer:
        label, score = self.signals
        model = arrow_stream(tables["classifier"])
        return partial(udf.likeliest, classifier=model, name=label, score=score, least_tokens=LEAST_TOKENS)

    def as_values(self) -> dict[str, Any]:
        return super().as_values() | {"one of": list(self.wanted), "none of": list(self.unwanted)}

    def __repr__(self) -> str:
        return f"{super().__repr__()} one of {list(self.wanted)} none of {list(self.unwanted)}"


def _words(name: str, words: Words, classes: Sequence[str]) -> tuple[str, ...]:
    """Return the listed classes; raises ConfigurationError for null, and for an unknown class."""
    names_of_classes: list[str] = []
    for word in words:
        if word is None:
            raise ConfigurationError(
                f"`{name}` lists null, which is no class. Leave null out; `missing: keep` or `missing: "
                "reject` decides about texts without a class."
            )
        if classes and word not in classes:
            raise ConfigurationError(unknown_name(f"class of `{name}`:", word, classes))
        names_of_classes.append(word)
    return tuple(names_of_classes)


def _quoted(words: Iterable[str]) -> str:
    return ", ".join("'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'" for word in words)
