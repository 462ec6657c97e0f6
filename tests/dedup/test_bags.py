"""Bags of a group, one per distinct text and made once, and the texts of frequent tokens."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from factory.dedup import vocabulary as vocabulary_module
from factory.dedup.bags import LARGE, bags
from factory.dedup.vocabulary import vocabulary
from factory.lake.schemas.dedup import BAGS
from tests.dedup.bagged import located_bags, packed
from tests.dedup.corpus import arrow, corpus, document
from tests.frames import assert_declared

ROWS = corpus(20, seed=7)
FIRST = ROWS[: len(ROWS) // 2]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def documents(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(arrow(ROWS)).cache()


def by_hash(frame: DataFrame) -> dict[str, dict[str, object]]:
    rows = frame.drop("token_texts").toArrow().to_pylist()
    assert len({row["content_hash"] for row in rows}) == len(rows)
    return {row["content_hash"]: row for row in rows}


def test_each_distinct_text_has_one_bag(documents: DataFrame) -> None:
    made = bags(documents, "code")
    assert_declared(made, BAGS)
    copies: dict[object, list[dict[str, object]]] = {}
    for row in ROWS:
        copies.setdefault(row["content_hash"], []).append(row)
    found = by_hash(made)
    assert found.keys() == copies.keys()
    for content_hash, row in found.items():
        assert row["copies"] == len(copies[content_hash])
        [bag] = packed([copies[content_hash][0]["text"]]).to_pylist()
        assert row["bag"] == bag


def test_bags_do_not_depend_on_partitions(documents: DataFrame) -> None:
    assert by_hash(bags(documents.repartition(7, "key"), "code")) == by_hash(bags(documents, "code"))


def test_known_texts_are_not_read_again(spark: SparkSession, documents: DataFrame) -> None:
    previous = bags(spark.createDataFrame(arrow(FIRST)), "code")
    previous = previous.withColumn("n_tokens", F.lit(-1).cast("long"))
    known = {row["content_hash"] for row in FIRST}
    grown = by_hash(bags(documents, "code", previous))
    assert {name for name, row in grown.items() if row["n_tokens"] == -1} == known
    whole = by_hash(bags(documents, "code"))
    for column in ("bag", "copies"):
        assert {text: row[column] for text, row in grown.items()} == {
            text: row[column] for text, row in whole.items()
        }


def test_bags_of_texts_that_have_left_are_left_out(spark: SparkSession, documents: DataFrame) -> None:
    left = bags(spark.createDataFrame(arrow(FIRST)), "code", bags(documents, "code"))
    assert by_hash(left).keys() == {row["content_hash"] for row in FIRST}


def test_a_frequent_token_keeps_its_text_when_its_bag_goes(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary_module, "TEXT_DOCUMENTS", 2)
    texts = ["alpha", "alpha beta", "alpha beta gamma", "beta gamma"]
    documents = spark.createDataFrame(arrow([document(name, name) for name in texts]))
    whole = located_bags(documents)
    previous = vocabulary(whole).localCheckpoint()
    assert token_texts(previous) == {"alpha": 3, "beta": 3, "gamma": 2}
    for text in texts:
        content = document(text, text)["content_hash"]
        kept = whole.where(F.col("content_hash") != content)
        counts = {
            word: sum(word in other_text.split() for other_text in texts if other_text != text)
            for word in token_texts(previous)
        }
        frequent = {word: n for word, n in counts.items() if n >= 2}
        assert token_texts(vocabulary(kept, previous)) == frequent


def token_texts(counted: DataFrame) -> dict[str, int]:
    return {row.text: row.document_frequency for row in counted.where("text IS NOT NULL").collect()}


def test_the_large_columns_are_the_binary_ones() -> None:
    assert list(LARGE) == [column.name for column in BAGS.columns if pa.types.is_binary(column.type)]
