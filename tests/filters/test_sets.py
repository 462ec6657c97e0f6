"""Rules are found by set and by name, each once, with the limits asked for; the documentation lists all."""

from __future__ import annotations

import pytest

from factory.filters.limits import AtLeast
from factory.filters.rounds import Round
from factory.filters.rule import TextRule
from factory.filters.sets import IMAGE_SETS, RULE_SETS, rules
from factory.filters.table import rule_table
from factory.filters.text import Text
from tests.conftest import ROOT


def test_rule_names_are_unique_over_all_sets() -> None:
    names = [rule.name for chosen in RULE_SETS.values() for rule in chosen]
    assert sorted(names) == sorted(set(names))
    assert len(rules(list(RULE_SETS))) == len(names)


@pytest.mark.parametrize("rule", rules(list(RULE_SETS)), ids=lambda rule: rule.name)
def test_the_example_of_a_rule_fails_it(rule: TextRule) -> None:
    assert rule.limit.violated(rule.measure(Text(rule.example))) is not None


def test_limits_are_those_of_the_papers() -> None:
    limits = {rule.name: str(rule.limit) for rule in rules(["gopher_quality", "gopher_repetition"])}
    assert limits == {
        "word_count": "50 to 100,000",
        "mean_word_length": "3 to 10",
        "hash_to_word_ratio": "<= 0.1",
        "ellipsis_to_word_ratio": "<= 0.1",
        "bullet_lines": "<= 0.9",
        "ellipsis_lines": "<= 0.3",
        "alphabetic_words": ">= 0.8",
        "stop_words": ">= 2",
        "duplicate_lines": "<= 0.3",
        "duplicate_paragraphs": "<= 0.3",
        "duplicate_line_chars": "<= 0.2",
        "duplicate_paragraph_chars": "<= 0.2",
        "top_2_gram": "<= 0.2",
        "top_3_gram": "<= 0.18",
        "top_4_gram": "<= 0.16",
        "duplicate_5_grams": "<= 0.15",
        "duplicate_6_grams": "<= 0.14",
        "duplicate_7_grams": "<= 0.13",
        "duplicate_8_grams": "<= 0.12",
        "duplicate_9_grams": "<= 0.11",
        "duplicate_10_grams": "<= 0.1",
    }


def test_sets_and_rules_mix_and_a_rule_named_twice_comes_once() -> None:
    chosen = rules(["word_count", "code", "gopher_quality", "code_lines"])
    expected = ["word_count"] + [rule.name for rule in RULE_SETS["code"]]
    expected += [rule.name for rule in RULE_SETS["gopher_quality"] if rule.name != "word_count"]
    assert [rule.name for rule in chosen] == expected


def test_a_limit_replaces_that_of_one_rule_only() -> None:
    changed = Round(rules=("gopher_quality",), limits={"stop_words": AtLeast(0)}).build()
    assert {rule.name: rule.limit for rule in changed} == {
        rule.name: AtLeast(0) if rule.name == "stop_words" else rule.limit
        for rule in RULE_SETS["gopher_quality"]
    }


def test_the_documentation_holds_the_table_of_all_rules() -> None:
    assert rule_table() in (ROOT / "docs" / "filters.md").read_text(encoding="utf-8")
    assert rule_table().count("\n") == 2 + len(rules([*RULE_SETS, *IMAGE_SETS]))
