"""The sets `datatrove_*` give the verdicts that datatrove gave on texts of Python's documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bench.filters.compatible import COMPATIBLE, first_failing, rule_of
from factory.filters.limits import AtLeast
from factory.filters.rounds import Round
from factory.filters.rules.datatrove.text import DatatroveText
from factory.filters.rules.datatrove.tokenizer import tables
from factory.filters.sets import RULE_SETS, rules
from factory.filters.stage import decide, measure
from factory.filters.text import Text
from factory.orchestration.chain.filters import signals_of
from tests.conftest import ROOT

ANSWERS = json.loads((ROOT / "tests/filters/rules/datatrove/answers.json").read_text())
VERDICTS: list[dict[str, Any]] = ANSWERS["verdicts"]
SETS = [f"datatrove_{name}" for name in COMPATIBLE]


def expected(verdict: dict[str, Any]) -> dict[str, str | None]:
    return {name: rule_of(name, reason) for name, reason in verdict["reasons"].items()}


@pytest.mark.parametrize("verdict", VERDICTS, ids=range(len(VERDICTS)))
def test_the_first_failing_rule_is_the_reason_of_datatrove(verdict: dict[str, Any]) -> None:
    assert first_failing(verdict["text"]) == expected(verdict)


def test_the_recorded_texts_are_kept_and_dropped_by_every_filter() -> None:
    for name in COMPATIBLE:
        reasons = [verdict["reasons"][name] for verdict in VERDICTS]
        assert min(reasons.count(None), len(reasons) - reasons.count(None)) >= 15, name
    assert ANSWERS["versions"] == tables()["versions"]


def test_a_set_has_the_limits_of_our_set_of_that_name() -> None:
    for name in COMPATIBLE:
        limits = {rule.name: rule.limit for rule in RULE_SETS[name]}
        compatible = {
            rule.name.removeprefix("datatrove_"): rule.limit for rule in RULE_SETS[f"datatrove_{name}"]
        }
        empty = {rule: limit for rule, limit in compatible.items() if rule not in limits}
        assert {rule: compatible[rule] for rule in limits} == limits
        assert list(empty.values()) == ([AtLeast(1)] if name in ("gopher_repetition", "fineweb") else [])


@pytest.mark.parametrize(
    "text,rule,value",
    [
        ("The cat, and THE dog: that's all.", "stop_words", 2.0),  # and, that
        ("(don't) -- 42 !", "word_count", 3.0),  # do, n't, 42
        ("(don't) -- 42 !", "alphabetic_words", 2 / 7),
        ("- a\n\n  - b\nc\n\n\n", "bullet_lines", 2 / 6),
        ("a\nb\n \t\na\nb\n\na\nb", "duplicate_paragraphs", 0.0),
        ("a\nb\n\na\nb\n\n\na\nb", "duplicate_paragraphs", 2 / 3),
        ("\na\n\na\n", "duplicate_lines", 2 / 4),
        ("Hello world", "top_2_gram", 1.0),
        ("a b a b a b", "top_2_gram", 9 / 11),
        ("ab c d e f a bc d e f", "duplicate_5_grams", 6 / 21),
        ("a b c", "duplicate_5_grams", 0.0),
        ("It was so. [12]\nSee Privacy Policy here.\nAnd {so} is it.", "c4_sentences", 1.0),
        ("It was so! And so? Yes it was.", "c4_sentences", 3.0),
        ("One. \nTwo.\n", "line_punctuation", 1 / 2),
        ("abc\n\nabc\n", "fineweb_duplicate_chars", 3 / 6),
        ("f(x)\n", "newline_to_word_ratio", 1 / 2),
    ],
)
def test_a_measure_counts_what_datatrove_counts(text: str, rule: str, value: float) -> None:
    assert rules([f"datatrove_{rule}"])[0].measure(Text(text)) == value


@pytest.mark.parametrize("name", SETS)
def test_a_text_without_words_has_a_measure_or_none(name: str) -> None:
    for text in ("", "\n", " \u3000\n", "\x1c"):
        assert all(
            rule.measure(Text(text)) is None or rule.measure(Text(text)) >= 0 for rule in rules([name])
        )


def test_the_most_frequent_ngram_of_equals_is_the_first() -> None:
    assert DatatroveText("long longer a b").top_ngram_chars(2) == len("long longer")
    assert DatatroveText("a").top_ngram_chars(2) is None


def test_another_set_is_another_table_of_signals() -> None:
    ours, theirs = (signals_of(Round(rules=[name]).build()) for name in ("c4", "datatrove_c4"))
    assert not ours.keys() & theirs.keys()


@pytest.mark.spark
def test_workers_of_spark_give_the_verdicts_of_datatrove(spark: SparkSession) -> None:
    chosen = Round(rules=SETS).build()
    documents = spark.createDataFrame(
        [(str(at), verdict["text"]) for at, verdict in enumerate(VERDICTS[:40])], "doc_id string, text string"
    )
    decided = {row.doc_id: row for row in decide(measure(documents, chosen), chosen).collect()}
    assert len(decided) == 40
    for at, verdict in enumerate(VERDICTS[:40]):
        found = [rejection.rule for rejection in decided[str(at)].rejections]
        for name in COMPATIBLE:
            names = [rule.name for rule in RULE_SETS[f"datatrove_{name}"]]
            assert next((it for it in found if it in names), None) == expected(verdict)[name]
