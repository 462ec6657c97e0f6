"""Rules about the origin of a document: predicates on the columns of `raw`, which need no text.

    predicate("stars", {"at_least": 10})
    predicate("license", ["MIT", "Apache-*", None])          # None: documents without a license too
    predicate("path", {"none_of": ["**/tests/**"]})
    predicate("created_at", {"at_least": date(2015, 1, 1)})
    predicate("metadata.topic", {"one_of": ["web"]})

A predicate is a rule like any other: it has a name, a value and a limit. The signals table copies its column
of `raw`, so that a change of list or bound measures nothing again. A missing number has no value and passes;
a missing word is in no list, unless the list names null.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from functools import cached_property

from factory.errors import ConfigurationError
from factory.filters.rule import AtLeast, Kind, Limit, Rule, limit_between
from factory.suggestions import quoted, unknown_name

NUMBERS = {"n_bytes": "bytes", "stars": "stars", "created_at": "seconds since 1970"}
WORDS = (
    *("source", "key", "media_type", "language", "repository"),
    *("path", "revision", "license", "fork_of"),
)
METADATA = "metadata."
ANY_CASE = ("language", "license")  # `MIT` and `mit` are the same license
OR, AND = " OR ", " AND "  # of an SPDX expression

Condition = Mapping[str, object] | Iterable[str | None]


class NumberPredicate(Rule):
    """The number in a column of `raw`, times in seconds since 1970."""

    def __init__(self, field: str, limit: Limit) -> None:
        self.name, self.unit, self.limit = field, NUMBERS[field], limit


class WordPredicate(Rule):
    """1 if the word in a column of `raw` is in `one_of` and not in `none_of`, else 0.

    The lists hold globs: `*` is any characters but `/`, `**` any characters, `**/` any folders or none, `?`
    one character but `/`; None is the missing word. An empty `one_of` allows every word.
    """

    unit = "flag"

    def __init__(self, field: str, one_of: Iterable[str | None], none_of: Iterable[str | None]) -> None:
        self.name, self.limit = field, AtLeast(1)
        self.one_of, self.none_of = tuple(one_of), tuple(none_of)

    @property
    def signals(self) -> Mapping[str, Kind]:
        return {column(self.name): "word"}

    def allows(self, word: str | None) -> bool:
        """Return whether a document with `word` in the column passes."""
        if word is None:
            return (not self.one_of or None in self.one_of) and None not in self.none_of
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

    def __repr__(self) -> str:
        return f"{self.name} one of {list(self.one_of)} none of {list(self.none_of)}"


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
    alone is `one_of`. Raises ConfigurationError for an unknown field or key, and for a value of the wrong
    kind.
    """
    if field in NUMBERS:
        return _number(field, condition)
    if field in WORDS or (field.startswith(METADATA) and field != METADATA):
        return _word(field, condition)
    raise ConfigurationError(unknown_name("field", field, [*NUMBERS, *WORDS, f"{METADATA}<key>"]))


def column(field: str) -> str:
    """Return the column of the signals table that holds `field`."""
    return re.sub(r"[^0-9A-Za-z_]", lambda odd: f"_{ord(odd[0]):x}_", field.replace(".", "_", 1))


def _number(field: str, condition: Condition) -> Rule:
    if not isinstance(condition, Mapping):
        raise ConfigurationError(
            f"`{field}` is a number, so its condition is `at_least`, `at_most` or both, "
            f"as in `{{at_least: 10}}`, not {condition!r}."
        )
    _keys(field, condition, ("at_least", "at_most"))
    bounds = {key: _plain(field, value) for key, value in condition.items()}
    return NumberPredicate(field, limit_between(bounds.get("at_least"), bounds.get("at_most")))


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
    lists = dict(condition) if isinstance(condition, Mapping) else {"one_of": condition}
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
    kind = LicensePredicate if field == "license" else WordPredicate
    return kind(field, lists.get("one_of", ()), lists.get("none_of", ()))


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
