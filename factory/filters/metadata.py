"""Rules about the origin of a document: predicates on the columns of `raw`, which need no text.

    predicate("stars", {"at_least": 10})
    predicate("license", ["MIT", "Apache-*", None])          # None: documents without a license too
    predicate("path", {"none_of": ["**/tests/**"]})
    predicate("created_at", {"at_least": date(2015, 1, 1)})
    predicate("metadata.topic", {"one_of": ["web"]})
    predicate("metadata.score", {"at_least": 0.5})
    predicate("filtered.web__strict.kept", {"at_least": 1})  # a column of a table with a row per document
    predicate("facts.rank", {"at_most": 100_000})            # what `facts` of the dataset say

A predicate is a rule like any other: it has a name, a value and a limit. The signals table copies its column
of `raw` or of the table, so that a change of list or bound measures nothing again. A document without the
number or word passes if the condition only excludes (`at_most`, `none_of`), and is rejected if the condition
asks for something (`at_least`, `one_of`); null in a list and `missing: keep` or `reject` say otherwise. A
value of `metadata` that is compared with numbers or dates, but is neither, counts as missing
(`not_comparable` counts them).
"""

from __future__ import annotations

import copy
import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from factory.errors import ConfigurationError
from factory.filters.limits import (
    AtLeast,
    Limit,
    Missing,
    asks_for_value,
    limit_between,
    parse_missing,
)
from factory.filters.rule import Kind, Rule
from factory.lake import names
from factory.lake.names import STAGE_OF_NAMESPACE, TableName
from factory.suggestions import quoted, unknown_name

NUMBERS = {"n_bytes": "bytes", "stars": "stars", "created_at": "seconds since 1970", "quality": "quality"}
WORDS = (
    *("source", "key", "media_type", "language", "repository"),
    *("path", "revision", "license", "fork_of"),
)
METADATA, FACTS = "metadata.", "facts."
ANY_CASE = ("language", "license")  # `MIT` and `mit` are the same license
OR, AND = " OR ", " AND "  # of an SPDX expression

Condition = Mapping[str, object] | Iterable[str | None]


class Predicate(Rule):
    """A condition on `field`: a column of `raw`, a key of `metadata`, or a column of another table."""

    def __init__(self, field: str) -> None:
        self.name = field
        if table := table_of(field):
            self.reads = {"values": table}

    def of_dataset(self, dataset: str) -> Self:
        if not self.name.startswith(FACTS):
            return self
        reading = copy.copy(self)
        reading.reads = {"values": names.facts(dataset)}
        return reading

    @property
    def part(self) -> str:
        return column(self.name) if self.reads else ""

    @property
    def field(self) -> str:
        """The column, of `raw` or of the table that the predicate reads; of facts, the name of one."""
        if self.name.startswith(FACTS):
            return self.name.removeprefix(FACTS)
        return self.name.rpartition(".")[2] if self.reads else self.name


class NumberPredicate(Predicate):
    """The number in a column, times in seconds since 1970; true counts as 1."""

    def __init__(self, field: str, limit: Limit) -> None:
        super().__init__(field)
        self.unit, self.limit = NUMBERS.get(field, "number"), limit

    @property
    def missing_by_default(self) -> Missing:
        return "reject" if asks_for_value(self.limit) else "keep"

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {column(self.name): "number"}

    @property
    def expression(self) -> str:
        return f"`{column(self.name)}`"


class WrittenNumberPredicate(NumberPredicate):
    """The number or date that a value of `metadata` or a fact spells; the signals hold the value itself."""

    def __init__(self, field: str, limit: Limit, *, dates: bool) -> None:
        super().__init__(field, limit)
        self.dates = dates
        self.unit = "seconds since 1970" if dates else "number"

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {column(self.name): "word"}

    @property
    def expression(self) -> str:
        word = super().expression
        if self.dates:
            return f"unix_micros(try_cast({word} AS timestamp)) / 1e6"
        number = f"try_cast({word} AS double)"
        return f"CASE WHEN abs({number}) < double('inf') THEN {number} END"

    @property
    def not_comparable(self) -> str:
        """The number of values that are not numbers or dates: a Spark aggregate over the signals."""
        return f"count_if(`{column(self.name)}` IS NOT NULL AND {self.expression} IS NULL)"

    @property
    def noun(self) -> str:
        """The noun for an expected value."""
        return "date" if self.dates else "number"


class WordPredicate(Predicate):
    """1 if the word in a column is in `one_of` and not in `none_of`, else 0.

    The lists hold globs: `*` is any characters but `/`, `**` any characters, `**/` any folders or none, `?`
    one character but `/`; None is the missing word, which has no value. An empty `one_of` allows every word.
    """

    unit = "flag"

    def __init__(self, field: str, one_of: Iterable[str | None], none_of: Iterable[str | None]) -> None:
        super().__init__(field)
        self.limit = AtLeast(1)
        self.one_of, self.none_of = tuple(one_of), tuple(none_of)

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {column(self.name): "word"}

    @property
    def missing_by_default(self) -> Missing:
        is_wanted = not self.one_of or None in self.one_of
        return "keep" if is_wanted and None not in self.none_of else "reject"

    @property
    def names_missing(self) -> bool:
        """Whether a list sets the policy for documents without the word."""
        return None in self.one_of or None in self.none_of

    def allows(self, word: str | None) -> bool:
        """Return whether a document with `word` in the column passes."""
        if word is None:
            return not self.rejects_missing
        wanted = not self.one_of or re.search(self.wanted, word) is not None
        return wanted and re.search(self.unwanted, word) is None

    @cached_property
    def wanted(self) -> str:
        """The pattern of `one_of`, valid in both Python and Java."""
        return self._pattern(self.one_of)

    @cached_property
    def unwanted(self) -> str:
        """The pattern of `none_of`; it matches nothing if `none_of` is empty."""
        return self._pattern(self.none_of)

    def _pattern(self, globs: Iterable[str | None]) -> str:
        flags = "(?is)" if self.name in ANY_CASE else "(?s)"
        choices = "|".join(_expression(glob) for glob in globs if glob is not None)
        # `$` would also match before a newline at the end, in either language.
        return rf"{flags}^(?:{choices})(?![\s\S])" if choices else r"(?!)"

    def as_values(self) -> dict[str, Any]:
        return super().as_values() | {"one of": list(self.one_of), "none of": list(self.none_of)}

    def __repr__(self) -> str:
        lists = f"one of {list(self.one_of)} none of {list(self.none_of)}"
        return f"{self.name} {lists}{self.missing_phrase}"


class LicensePredicate(WordPredicate):
    """1 if the lists allow every part of one alternative of a license, else 0.

    The license is an SPDX expression, `MIT OR Apache-2.0 AND ISC`. Readers resolve the parentheses of
    manifests; where an expression still has some, the lists must allow every name.
    """

    def allows(self, word: str | None) -> bool:
        """Return whether a document under the license `word` passes."""
        allows = super().allows
        if word is None:
            return allows(None)
        if "(" in word:
            return all(map(allows, re.split(f"{OR}|{AND}", re.sub("[()]", "", word))))
        return any(all(map(allows, choice.split(AND))) for choice in word.split(OR))


def predicate(field: str, condition: Condition) -> Rule:
    """Return the rule that `field` meets `condition`, both plain values as a YAML file has them.

    `condition` holds `at_least` and `at_most` for a number or time, `one_of` and `none_of` for a word; a list
    alone is `one_of`. `missing`, a further key, is the policy for documents without a value. Raises
    ConfigurationError for an unknown field or key, and for a value of the wrong kind.
    """
    condition, missing = split_missing(field, condition)
    rule = _rule(field, condition)
    if missing is None:
        return rule
    if isinstance(rule, WordPredicate) and rule.names_missing:
        raise ConfigurationError(
            f"`{field}` has null in a list and `missing: {missing}`, which decide the same documents. Leave "
            "one of the two out."
        )
    return rule.with_missing(missing)


def split_missing(field: str, condition: Condition) -> tuple[Condition, Missing | None]:
    """Return a condition without its `missing`, and that; raises ConfigurationError for an unknown word."""
    if not isinstance(condition, Mapping) or "missing" not in condition:
        return condition, None
    others = {key: operand for key, operand in condition.items() if key != "missing"}
    return others, parse_missing(field, condition["missing"])


def _rule(field: str, condition: Condition) -> Rule:
    if field in NUMBERS:
        return _number(field, condition)
    if field in WORDS:
        return _word(field, condition)
    if table_of(field) or (field.startswith((METADATA, FACTS)) and field not in (METADATA, FACTS)):
        is_compared = isinstance(condition, Mapping) and {"at_least", "at_most"} & condition.keys()
        return _number(field, condition) if is_compared else _word(field, condition)
    further = (f"{METADATA}<key>", f"{FACTS}<name>", "<namespace>.<table>.<column>")
    raise ConfigurationError(unknown_name("field", field, [*NUMBERS, *WORDS, *further]))


def table_of(field: str) -> TableName | None:
    """Return the table of a field `namespace.table.column`, None for a field of documents."""
    namespace, _, rest = field.partition(".")
    name, dot, _ = rest.partition(".")
    is_fact = field.startswith(FACTS)  # whose name may have a dot
    return TableName(namespace, name) if dot and namespace in STAGE_OF_NAMESPACE and not is_fact else None


def column(field: str) -> str:
    """Return the column of the signals table that holds `field`."""
    n_dots = -1 if table_of(field) else 1
    return re.sub(r"[^0-9A-Za-z_]", lambda odd: f"_{ord(odd[0]):x}_", field.replace(".", "_", n_dots))


def _number(field: str, condition: Condition) -> Rule:
    if not isinstance(condition, Mapping):
        raise ConfigurationError(
            f"`{field}` is a number, so its condition is `at_least`, `at_most` or both, "
            f"as in `{{at_least: 10}}`, not {condition!r}."
        )
    _keys(field, condition, ("at_least", "at_most"))
    bounds = {key: _plain(field, value) for key, value in condition.items()}
    limit = limit_between(bounds.get("at_least"), bounds.get("at_most"))
    if not field.startswith((METADATA, FACTS)):
        return NumberPredicate(field, limit)
    dates = {isinstance(value, dt.date) for value in condition.values()}
    if len(dates) > 1:
        raise ConfigurationError(f"`{field}` is compared with a number and a date. Give two of one kind.")
    return WrittenNumberPredicate(field, limit, dates=dates.pop())


def _plain(field: str, value: object) -> float:
    if field == "created_at" and not isinstance(value, dt.date):
        raise ConfigurationError(f"`created_at` is compared with a date such as 2015-01-01, not {value!r}.")
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).timestamp()
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC).timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError(f"`{field}` is compared with a number, not {value!r}.")
    return float(value)


def _word(field: str, condition: Condition) -> Rule:
    one_of, none_of = word_lists(field, condition)
    kind = LicensePredicate if field == "license" else WordPredicate
    return kind(field, one_of, none_of)


def word_lists(field: str, condition: Condition) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """Return the lists `one_of` and `none_of` of a condition on words; a list alone is `one_of`.

    Raises ConfigurationError for other keys, and for a list without words.
    """
    lists: dict[str, Any] = dict(condition) if isinstance(condition, Mapping) else {"one_of": condition}
    _keys(field, lists, ("one_of", "none_of"))
    for key, words in lists.items():
        if isinstance(words, str) or not isinstance(words, Iterable):
            raise ConfigurationError(f"`{key}` of `{field}` is a list of words or patterns, not {words!r}.")
        lists[key] = words = list(words)
        if not words or not all(word is None or isinstance(word, str) for word in words):
            raise ConfigurationError(
                f"`{key}` of `{field}` is {words!r}. List at least one word or pattern, quoted where a file "
                "would read it as a number; null stands for documents without one."
            )
    return lists.get("one_of", ()), lists.get("none_of", ())


def _keys(field: str, condition: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    for key in condition:
        if key not in allowed:
            raise ConfigurationError(unknown_name(f"condition of `{field}`:", key, allowed))
    if not condition:
        raise ConfigurationError(f"`{field}` has no condition. Give {quoted(allowed, ' or ')}.")


def _expression(glob: str) -> str:
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(wild.get(piece) or re.escape(piece) for piece in pieces)
