"""Rules tried on a few documents without Spark decide as a run does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from factory.filters.rounds import Round
from factory.filters.rule import TextRule
from factory.filters.sets import rules
from factory.filters.stage import decide, measure
from factory.filters.trial import try_rounds

SENTENCE = "The tide turns twice a day along this coast, and the boats that follow it have to be back. "
TEXTS = ["too short", SENTENCE * 5, " ".join(f"word{n}" for n in range(90)), "the of " * 60, "x = 1\n" * 30]


def documents() -> list[dict[str, Any]]:
    shared = {
        "license": "mit",
        "stars": None,
        "created_at": datetime(2020, 1, 1, tzinfo=UTC),
        "metadata": None,
    }
    first, *others = ({"doc_id": f"{n}", "text": text, **shared} for n, text in enumerate(TEXTS))
    metadata = [("score", "0.5"), ("topic", "web")]
    return [{**first, "license": "GPL-3.0", "stars": 3, "metadata": metadata}, *others]


ROUND = Round(
    rules=["gopher_quality", "gopher_repetition", "c4"],
    limits={"word_count": [3, 1000]},
    predicates={
        "license": ["MIT", "Apache-*"],
        "stars": {"at_most": 2},
        "created_at": {"at_least": datetime(2019, 1, 1, tzinfo=UTC)},
        "metadata.score": {"at_least": 0.4, "missing": "keep"},
        "metadata.topic": {"none_of": ["web"]},
    },
)


@pytest.mark.spark
def test_the_trial_removes_what_a_run_removes(spark: SparkSession) -> None:
    schema = (
        "doc_id string, text string, license string, stars long, created_at timestamp, "
        "metadata map<string, string>"
    )
    rows = [{**row, "metadata": dict(row["metadata"] or ()) or None} for row in documents()]
    signals = measure(spark.createDataFrame(rows, schema), ROUND.build())
    verdicts = (
        decide(signals, ROUND.build()).select("kept", F.col("rejections.rule").alias("rules")).collect()
    )
    trial = try_rounds([ROUND.build()], documents())
    assert trial.n_removed == sum(not row.kept for row in verdicts)
    by_name = {label.split("`")[1]: n for label, n in trial.n_by_rule.items()}
    names = [name for row in verdicts for name in row.rules]
    assert by_name == {name: names.count(name) for name in set(names)}


def test_every_text_rule_removes_its_example() -> None:
    for rule in rules(("gopher_quality", "gopher_repetition", "c4", "code", "datatrove_c4")):
        assert isinstance(rule, TextRule)
        trial = try_rounds([[rule]], [{"doc_id": "a", "text": rule.example}])
        assert (rule.name, trial.n_removed) == (rule.name, 1)


def test_later_rounds_see_what_earlier_ones_kept() -> None:
    short, stop = Round(rules=["word_count"]).build(), Round(rules=["stop_words"]).build()
    trial = try_rounds([short, stop], documents())
    assert (trial.n_documents, trial.n_removed) == (5, 3)
    assert trial.n_by_rule == {"`word_count` (50 to 100,000)": 1, "`stop_words` (>= 2)": 2}


def test_rules_that_need_more_than_the_document_are_named() -> None:
    filters = Round(
        rules=["word_count"],
        languages=["en"],
        limits={"word_count": {"top": 0.1}},
        predicates={
            "facts.rank": {"at_most": 3},
            "metadata.day": {"at_least": datetime(2020, 1, 1, tzinfo=UTC)},
        },
    )
    trial = try_rounds([filters.build()], documents())
    assert (trial.n_removed, set(trial.not_tried)) == (
        0,
        {"word_count", "language_score", "facts.rank", "metadata.day"},
    )
