"""What becomes of a document for which a rule has no value: kept or rejected, by the rule or as declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from factory.errors import ConfigurationError
from factory.filters.implication import implies
from factory.filters.limits import AtLeast, AtMost, Between, Bottom, Requirement, Top
from factory.filters.metadata import WordPredicate, predicate
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.filters.rules.classified import Category, ClassifierScore
from factory.filters.rules.language import LanguageScore
from factory.filters.rules.listed_words import ListedWords
from factory.filters.rules.onnx_score import OnnxScore
from factory.filters.rules.perplexity import BitsPerByte
from factory.filters.shares import with_bounds
from factory.orchestration.declare.models import ClassifierEntry, OnnxModelEntry

[WORD_COUNT] = Round(rules=["word_count"]).build()


@pytest.mark.invariant(
    "A condition that asks for a value rejects a document without one, a condition that only excludes "
    "keeps it, and verdicts, run and trace name every rule that a document passes without a value."
)
@pytest.mark.parametrize(
    "rule, rejects",
    [
        (WORD_COUNT, False),  # a statistic does not apply to every text
        (WORD_COUNT.with_limit(Top(0.5)), True),  # a share is never more than its share
        (WORD_COUNT.with_limit(Bottom(0.5)), True),
        (LanguageScore(), True),  # without a letter there is no language
        (LanguageScore(["en"]), True),
        (LanguageScore().with_limit(AtMost(0.9)), False),
        (ClassifierScore("quality", AtLeast(0.5)), True),  # not shown to be good
        (ClassifierScore("quality", Between(0.5, 0.9)), True),
        (ClassifierScore("quality", Top(0.1)), True),
        (ClassifierScore("advert", AtMost(0.5)), False),  # nor to be bad
        (ClassifierScore("advert", Bottom(0.9)), True),
        (Category("category"), False),
        (Category("category", ["forum"]), True),
        (Category("category", (), ["forum"]), False),
        (Category("category", (), ["forum"], limit=AtLeast(0.5)), True),
        (OnnxScore("educational"), True),
        (OnnxScore("toxic", AtMost(0.5)), False),
        (BitsPerByte("perplexity"), True),  # noise is taken for a language without a model
        (BitsPerByte("perplexity", AtMost(3)), True),
        (BitsPerByte("perplexity", Bottom(0.3)), True),
        (ListedWords("profanity"), False),
        (predicate("stars", {"at_least": 10}), True),
        (predicate("stars", {"at_most": 10}), False),
        (predicate("stars", {"at_least": 1, "at_most": 10}), True),
        (predicate("metadata.score", {"at_least": 0.5}), True),
        (predicate("facts.rank", {"at_most": 100}), False),
        (predicate("license", ["MIT"]), True),
        (predicate("license", ["MIT", None]), False),
        (predicate("license", {"none_of": ["GPL-*"]}), False),
        (predicate("license", {"none_of": ["GPL-*", None]}), True),
    ],
    ids=lambda given: repr(given) if isinstance(given, Rule) else "",
)
def test_a_condition_that_asks_for_a_value_rejects_documents_without(rule: Rule, rejects: bool) -> None:
    assert rule.rejects_missing is rejects
    assert rule.as_values()["missing"] == ("reject" if rejects else "keep")
    assert rule.with_missing("keep").rejects_missing is False
    assert rule.with_missing("reject").rejects_missing is True
    assert repr(rule.with_missing("keep")) != repr(rule.with_missing("reject"))
    if isinstance(rule, WordPredicate):
        assert [rule.with_missing("keep").allows(None), rule.allows(None)] == [True, not rejects]


@pytest.mark.parametrize(
    "declared, rejects",
    [
        ({"rules": ["word_count"], "limits": {"word_count": {"at_least": 9, "missing": "reject"}}}, True),
        ({"rules": ["word_count"], "limits": {"word_count": {"missing": "reject"}}}, True),
        ({"rules": ["word_count"], "limits": {"word_count": {"top": 0.5, "missing": "keep"}}}, False),
        ({"languages": ["en"], "limits": {"language_score": {"missing": "keep"}}}, False),
        ({"predicates": {"stars": {"at_least": 10, "missing": "keep"}}}, False),
        ({"predicates": {"stars": {"at_most": 10, "missing": "reject"}}}, True),
        ({"predicates": {"license": {"one_of": ["MIT"], "missing": "keep"}}}, False),
        ({"predicates": {"license": {"none_of": ["GPL-*"], "missing": "reject"}}}, True),
    ],
)
def test_a_round_says_what_becomes_of_documents_without_a_value(
    declared: dict[str, Any], rejects: bool
) -> None:
    [rule] = Round.model_validate(declared).build()
    assert rule.rejects_missing is rejects


def test_missing_alone_leaves_the_limit() -> None:
    [rule] = Round(rules=["word_count"], limits={"word_count": Requirement(None, "reject")}).build()
    assert rule.limit == WORD_COUNT.limit


@pytest.mark.parametrize(
    "declared, sentence",
    [
        (
            {"rules": ["c4"], "limits": {"c4_sentences": {"missing": "drop"}}},
            "`missing` of `c4_sentences` is 'drop'. Give `keep` or `reject`",
        ),
        ({"predicates": {"stars": {"at_least": 1, "missing": True}}}, "`missing` of `stars` is True."),
        ({"predicates": {"stars": {"missing": "keep"}}}, "`stars` has no condition."),
        (
            {"predicates": {"license": {"one_of": ["MIT", None], "missing": "keep"}}},
            "`license` has null in a list and `missing: keep`",
        ),
    ],
)
def test_another_word_for_missing_is_refused(declared: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Round.model_validate(declared)
    assert sentence in str(raised.value)


def test_a_category_says_what_becomes_of_a_text_without_a_class() -> None:
    category = Category("category", classes=["forum", "reference"])
    assert category.among({"one_of": ["forum"], "missing": "keep"}).rejects_missing is False
    assert category.among({"none_of": ["forum"], "missing": "reject"}).rejects_missing is True
    with pytest.raises(ConfigurationError, match="Leave null out; `missing: keep` or `missing: reject`"):
        category.among(["forum", None])


def test_a_model_declares_it_for_every_dataset_that_names_its_rule(tmp_path: Path) -> None:
    examples = {"positives": "good", "negatives": "web"}
    entry = ClassifierEntry.model_validate({**examples, "limit": 0.5, "missing": "keep"})
    assert entry.rule("quality").rejects_missing is False
    assert ClassifierEntry.model_validate(examples).rule("quality").rejects_missing is True
    assert OnnxModelEntry(file="a.onnx", missing="keep").rule("score").rejects_missing is False


@pytest.mark.parametrize("share, within", [(Top(0.1), 0.8), (Bottom(0.1), 0.2)])
def test_the_bound_of_a_share_rejects_what_the_share_rejects(share: Top | Bottom, within: float) -> None:
    rule = ClassifierScore("quality", share)
    [bounded] = with_bounds([rule], {"quality": 0.5})
    assert bounded.rejects_missing is True
    assert bounded.bounds.violated(within) is None
    assert bounded.bounds.violated(1 - within) == 0.5
    assert with_bounds([rule.with_missing("keep")], {"quality": 0.5})[0].rejects_missing is False
    # No document had a value: none is measured against a bound, and none is shown to be among the best.
    [unbounded] = with_bounds([rule], {})
    assert unbounded.rejects_missing is True
    assert unbounded.bounds.violated(within) is None


def test_a_rule_that_keeps_missing_values_implies_none_that_rejects_them() -> None:
    keeps, rejects = (predicate("stars", {"at_least": 9}).with_missing(word) for word in ("keep", "reject"))
    assert implies(rejects, keeps)
    assert not implies(keeps, rejects)
    assert implies(keeps, keeps.with_limit(AtLeast(3)))
    assert implies(rejects, rejects.with_limit(AtLeast(3)))
