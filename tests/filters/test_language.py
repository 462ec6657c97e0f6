"""The language rule rejects what is in no wanted language, and what is in none for certain."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.language import LABEL, SCORE, LanguageScore
from factory.filters.rule import AtLeast
from factory.filters.stage import decide, measure
from factory.filters.text import Text

ENGLISH = "The rain went on and on, and nobody in the house had thought to close a window."
GERMAN = "Der Regen hörte nicht auf, und niemand im Haus hatte daran gedacht, ein Fenster zu schließen."
NOISE = LanguageScore.example
TEXTS = {"english": ENGLISH, "german": GERMAN, "noise": NOISE, "numbers": "1 2 3", "empty": "", "null": None}


def test_the_value_is_the_probability_if_the_language_is_wanted_and_else_0() -> None:
    text = Text(GERMAN)
    score = LanguageScore().measure(text)
    assert score is not None
    assert score > 0.65
    assert LanguageScore(["en", "de"]).measure(text) == score
    assert LanguageScore(["en"]).measure(text) == 0
    assert LanguageScore(["en"]).measure(Text("1 2 3")) is None


def test_an_unknown_language_is_answered_with_the_codes_alike() -> None:
    with pytest.raises(
        ConfigurationError, match=r"The model does not detect `deu`\. Use a language's code.*, `de`, "
    ):
        LanguageScore(["deu"])


@pytest.mark.spark
def test_other_languages_and_limits_are_decided_from_the_same_signals(spark: SparkSession) -> None:
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
            expected = [] if bound is None else [{"rule": SCORE, "value": value, "threshold": bound}]
            assert decided[doc_id]["rejections"] == expected, (doc_id, rule)
