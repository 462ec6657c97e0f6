"""A rule written in Python is measured, decided and hashed as the built-in ones are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, AtMost
from factory.filters.python_rule import load_rule
from factory.filters.rounds import Round
from factory.filters.rule import TextRule
from factory.filters.sets import rules
from factory.filters.stage import decide, measure
from factory.filters.text import Text
from spark_udfs.filters import python_rules
from tests.conftest import ROOT

EXAMPLE = """
from factory.filters.limits import AtMost
from factory.filters.rule import TextRule
from factory.filters.text import Text

SIGN = "!"

def signs(text):
    return text.count(SIGN)

class Shouting(TextRule):
    name, unit, limit = "shouting", "per word", AtMost(0.5)

    def measure(self, text: Text) -> float | None:
        return signs(text.text) / len(text.words) if text.words else None

SOFT = Shouting().with_limit(AtMost(0))
"""
WITHOUT_SOFT = EXAMPLE.partition("SOFT")[0]
TEXTS = {"calm": "no sign at all", "loud": "go! go! go!", "empty": "", "null": None}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], TextRule]:
    """Write `my_rules.py` and load its rule `Shouting`."""

    def written(source: str) -> TextRule:
        (tmp_path / "my_rules.py").write_text(source)
        return load_rule("my_rules.py:Shouting", tmp_path)

    return written


class LongestWord(TextRule):
    name, unit, limit = "longest_word", "characters", AtLeast(3)

    def __init__(self, spare: int = 0) -> None:
        self.spare = spare

    def measure(self, text: Text) -> float | None:
        return max(map(len, text.words), default=0) - self.spare


@pytest.mark.spark
def test_a_rule_of_a_file_is_measured_and_decided_in_spark(
    spark: SparkSession, write: Callable[[str], TextRule], tmp_path: Path
) -> None:
    write(EXAMPLE)
    context = {"folder": tmp_path}
    given = {"rules": ["word_count", "my_rules.py:Shouting", LongestWord()], "limits": {"word_count": [0, 9]}}
    chosen = Round.model_validate(given, context=context).build()
    documents = spark.createDataFrame(list(TEXTS.items()), "doc_id string, text string").repartition(2)
    signals = measure(documents, chosen)
    measured = {row.doc_id: (row.word_count, row.shouting, row.longest_word) for row in signals.collect()}
    assert measured == {
        "calm": (4.0, 0.0, 4.0),
        "loud": (3.0, 1.0, 3.0),
        "empty": (0.0, None, 0.0),
        "null": (None, None, None),
    }
    found = {row.doc_id: row for row in decide(signals, chosen).collect()}
    assert [tuple(rejection) for rejection in found["loud"].rejections] == [("shouting", 1.0, 0.5)]
    assert [tuple(rejection) for rejection in found["empty"].rejections] == [("longest_word", 0.0, 3.0)]
    assert found["calm"].kept
    assert found["null"].kept
    lenient = Round.model_validate({**given, "limits": {"shouting": 1}}, context=context).build()
    kept = {row.doc_id for row in decide(signals, lenient[1:]).collect() if row.kept}
    assert kept == set(TEXTS) - {"empty"}


@pytest.mark.parametrize(
    "before, after, same",
    [
        ("text.words)", "text.words )", False),  # the method
        ('SIGN = "!"', 'SIGN = "?"', False),  # what it reaches in its file
        ("\n", "\n", True),
    ],
)
def test_the_hash_of_a_rule_is_that_of_its_file(
    write: Callable[[str], TextRule], before: str, after: str, same: bool
) -> None:
    first, second = write(EXAMPLE).source, write(EXAMPLE.replace(before, after)).source
    assert (first == second) == same


def test_the_hash_covers_the_attributes_of_a_rule_but_the_limit() -> None:
    assert LongestWord(1).source != LongestWord(2).source
    assert LongestWord(1).source == LongestWord(1).with_limit(AtMost(1)).source


def test_an_attribute_of_a_rule_named_missing_is_hashed_and_no_policy() -> None:
    first, second = LongestWord(1), LongestWord(1)
    first.missing, second.missing = "reject", 3  # type: ignore[attr-defined]
    assert first.source != second.source
    assert not first.rejects_missing
    assert first.with_missing("reject").rejects_missing
    assert first.with_missing("reject").source == first.source


def test_built_in_rules_have_no_hash_of_their_own() -> None:
    [rule] = rules(["word_count"])
    assert (rule.source, repr(rule)) == (None, "word_count 50 to 100,000 words")


def test_a_rule_or_a_class_can_be_named(write: Callable[[str], TextRule], tmp_path: Path) -> None:
    assert str(write(EXAMPLE).limit) == "<= 0.5"
    assert str(load_rule("my_rules.py:SOFT", tmp_path).limit) == "<= 0"


@pytest.mark.parametrize(
    "before, after, error",
    [
        ("Shouting", "Shoutin", r"Unknown rule of my_rules.py: `Shouting`\. Did you mean `Shoutin`"),
        ("def measure", "def measured", "`my_rules.py:Shouting` cannot be made: .*measure"),
        ("SIGN = ", "SIGN = 1 / 0", "my_rules.py fails with SyntaxError"),
        ('SIGN = "!"', "SIGN = 1 / 0", "my_rules.py fails with ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_without_the_rule_is_refused(
    write: Callable[[str], TextRule], before: str, after: str, error: str
) -> None:
    with pytest.raises(ConfigurationError, match=error):
        write(WITHOUT_SOFT.replace(before, after))


@pytest.mark.parametrize(
    "before, after, error",
    [
        ('"shouting", "per word"', '"word_count", "per word"', "taken name `word_count`"),
        ('"shouting", "per word"', '"path", "per word"', "taken name `path`"),
        ('"shouting", "per word"', '"Shouting", "per word"', "small letters"),
        ("name, unit, limit =", "name, unit, most =", "`Shouting` has no `limit`"),
        ('"per word", AtMost(0.5)', '"per word", 0.5', "limit of `Shouting` is 0.5"),
    ],
)
def test_an_invalid_rule_is_refused(
    write: Callable[[str], TextRule], before: str, after: str, error: str
) -> None:
    with pytest.raises(ConfigurationError, match=error):
        rules([write(WITHOUT_SOFT.replace(before, after))])


def test_a_round_names_the_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"no file `none.py`\. Paths are relative to "):
        Round.model_validate({"rules": ["none.py:X"]}, context={"folder": tmp_path})


def test_an_error_and_nan_are_refused_with_rule_and_document() -> None:
    class Odd(LongestWord):
        name = "odd"

        def measure(self, text: Text) -> float | None:
            return float("nan") if text.words else 1 / len(text.words)

    for text, error in (("a", "measures nan on document d"), ("", "fails on document d with Zero")):
        with pytest.raises(ConfigurationError, match=f"`odd` {error}"):
            python_rules.measure(pa.array(["d"]), pa.array([text]), rules=[Odd()], view=Text)


def test_the_example_of_the_documentation_rejects_emojis(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "filters.md").read_text().partition("## A rule of your own")[2]
    [source] = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    (tmp_path / "my_rules.py").write_text(source)
    chosen = Round.model_validate({"rules": ["my_rules.py:Emojis"]}, context={"folder": tmp_path}).build()
    texts = pa.array(["fine \U0001f600 \U0001f600", "fine"])
    [values] = python_rules.measure(pa.array(["a", "b"]), texts, rules=list(chosen), view=Text).values()
    assert [chosen[0].limit.violated(value) is None for value in values.to_pylist()] == [False, True]
