"""A round is declared by plain values of a file; an error names the nearest right value."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from factory.filters.limits import AtLeast, AtMost, Between, Limit
from factory.filters.metadata import predicate
from factory.filters.rounds import Round
from factory.filters.sets import RULE_SETS, rules

WHOLE = """
rules: [gopher_quality, top_2_gram]
languages: [en, de]
limits:
  word_count: [20, 5000]
  stop_words: 1
  top_2_gram: {at_most: 0.5}
  mean_word_length: {at_least: 2, at_most: 12}
  language_score: 0.5
predicates:
  stars: {at_least: 10}
  created_at: {at_least: 2015-01-01, at_most: 2020-01-01 12:00:00}
  license: [MIT, Apache-*, null]
  path: {none_of: ["**/tests/**"]}
  metadata.topic: {one_of: [web]}
"""


def test_a_round_is_read_from_plain_values() -> None:
    built = {rule.name: rule for rule in Round.model_validate(yaml.safe_load(WHOLE)).build()}
    assert list(built) == [
        *(rule.name for rule in RULE_SETS["gopher_quality"]),
        *("top_2_gram", "language_score", "stars", "created_at", "license", "path", "metadata.topic"),
    ]
    limits = {name: rule.limit for name, rule in built.items()}
    assert limits["word_count"] == Between(20, 5000)
    assert limits["stop_words"] == AtLeast(1)
    assert limits["top_2_gram"] == AtMost(0.5)
    assert limits["mean_word_length"] == Between(2, 12)
    assert limits["language_score"] == AtLeast(0.5)
    assert limits["alphabetic_words"] == AtLeast(0.8)
    assert limits["created_at"] == Between(
        dt.datetime(2015, 1, 1, tzinfo=dt.UTC).timestamp(),
        dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC).timestamp(),
    )
    assert repr(built["license"]) == repr(predicate("license", ["MIT", "Apache-*", None]))


def test_without_anything_a_round_has_no_rules() -> None:
    assert Round().build() == ()


def test_a_round_of_sets_has_their_rules_and_limits() -> None:
    built = Round(rules=("c4", "fineweb", "language")).build()
    assert [repr(rule) for rule in built] == [repr(rule) for rule in rules(["c4", "fineweb", "language"])]


def test_limits_and_predicates_may_be_given_as_objects() -> None:
    stars = predicate("stars", {"at_most": 5})
    built = Round(
        rules=("code_lines",), limits={"code_lines": AtLeast(1)}, predicates={"stars": stars}
    ).build()
    assert [rule.limit for rule in built] == [AtLeast(1), AtMost(5)]
    assert built[1] is stars


@pytest.mark.parametrize(
    "limit,value,expected",
    [
        ("top_2_gram", 0, AtMost(0)),
        ("stop_words", 3, AtLeast(3)),
        ("stop_words", {"at_most": 3}, AtMost(3)),
        ("word_count", {"at_least": 3}, AtLeast(3)),
    ],
)
def test_a_number_replaces_the_bound_in_its_direction(limit: str, value: Any, expected: Limit) -> None:
    declared = Round(rules=(limit,), limits={limit: value})
    assert declared.build()[0].limit == expected


@pytest.mark.parametrize(
    "declared,field,sentence",
    [
        ({"rules": ["gofer_quality"]}, "rules", "`gofer_quality`. Did you mean `gopher_quality`?"),
        ({"rules": ["fine_web"]}, "rules", "Did you mean `fineweb`?"),
        ({"rules": ["wordcount"]}, "rules", "Did you mean `word_count`?"),
        ({"rules": "code"}, "rules", "valid tuple"),
        ({"rule": ["code"]}, "rule", "not permitted"),
        ({"languages": ["english"]}, "languages", "The model does not detect `english`."),
        ({"rules": ["code"], "limits": {"code_line": 3}}, "limits", "Did you mean `code_lines`?"),
        ({"rules": ["c4"], "limits": {"word_count": 3}}, "limits", "is not among the chosen rules."),
        ({"rules": ["code"], "limits": {"code_lines": 3}}, "limits", "is 3, but the rule has two bounds"),
        ({"rules": ["c4"], "limits": {"c4_sentences": "5"}}, "limits", "The limit of `c4_sentences` is '5'."),
        ({"rules": ["c4"], "limits": {"c4_sentences": True}}, "limits", "The limit of `c4_sentences` is"),
        ({"rules": ["c4"], "limits": {"c4_sentences": {"least": 5}}}, "limits", "`at_least` and `at_most`"),
        ({"rules": ["c4"], "limits": {"c4_sentences": [9, 5]}}, "limits", "No value lies between 9 and 5."),
        ({"predicates": {"star": {"at_least": 1}}}, "predicates", "Did you mean `stars`"),
        ({"predicates": {"stars": {"atleast": 1}}}, "predicates", "Did you mean `at_least`?"),
        ({"predicates": {"stars": [10]}}, "predicates", "`stars` is a number"),
        ({"predicates": {"stars": {"at_least": "10"}}}, "predicates", "is compared with a number, not"),
        ({"predicates": {"stars": {}}}, "predicates", "`stars` has no condition."),
        ({"predicates": {"created_at": {"at_least": 2015}}}, "predicates", "compared with a date"),
        ({"predicates": {"license": "MIT"}}, "predicates", "`one_of` of `license` is a list of words"),
        ({"predicates": {"license": [1.0]}}, "predicates", "quoted where a file would read it as a number"),
        ({"predicates": {"license": []}}, "predicates", "List at least one"),
        ({"predicates": {"metadata.": ["x"]}}, "predicates", "Unknown field `metadata.`"),
    ],
)  # fmt: skip
def test_an_error_names_its_field_and_the_nearest_name(
    declared: dict[str, Any], field: str, sentence: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        Round.model_validate(declared)
    [error] = raised.value.errors()
    assert error["loc"][0] == field
    assert sentence in error["msg"]
