"""The language rule rejects texts in another language, and those whose language is uncertain."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast
from factory.filters.rules.language import LABEL, SCORE, LanguageScore
from factory.filters.stage import decide, measure
from factory.filters.text import Text
from tests.filters.test_language_id import TEXTS as SENTENCES

ENGLISH, GERMAN = SENTENCES["en"], SENTENCES["de"]
NOISE = LanguageScore.example
TEXTS = {"english": ENGLISH, "german": GERMAN, "noise": NOISE, "numbers": "1 2 3", "empty": "", "null": None}


def test_the_value_is_the_probability_of_a_wanted_language_or_0() -> None:
    text = Text(GERMAN)
    score = LanguageScore().measure(text)
    assert score is not None
    assert score > 0.65
    assert LanguageScore(["en", "de"]).measure(text) == score
    assert LanguageScore(["en"]).measure(text) == 0
    assert LanguageScore(["en"]).measure(Text("1 2 3")) is None


def test_an_unknown_language_is_answered_with_similar_codes() -> None:
    error = r"The model does not detect `deu`\. Use a language's code.*, `de`, "
    with pytest.raises(ConfigurationError, match=error):
        LanguageScore(["deu"])


@pytest.mark.spark
def test_languages_and_limits_are_decided_from_the_same_signals(spark: SparkSession) -> None:
    rows = [{"doc_id": doc_id, "text": text} for doc_id, text in TEXTS.items()]
    documents = spark.createDataFrame(rows, "doc_id string, text string")
    measured = measure(documents, [LanguageScore()])
    signals = spark.createDataFrame(measured.collect(), measured.schema)
    assert signals.columns == ["doc_id", SCORE, LABEL, "partition"]
    for rule in (LanguageScore(), LanguageScore(["en"]), LanguageScore(["en", "de"]).with_limit(AtLeast(0))):
        decided = {row.doc_id: row.asDict(recursive=True) for row in decide(signals, [rule]).collect()}
        for doc_id, text in TEXTS.items():
            value = None if text is None else rule.measure(Text(text))
            bound = rule.limit.violated(value)
            if value is None:  # a text without a letter is in no language
                bound = float(rule.bounds.low)
            expected = [] if bound is None else [{"rule": SCORE, "value": value, "threshold": bound}]
            assert decided[doc_id]["rejections"] == expected, (doc_id, rule)
