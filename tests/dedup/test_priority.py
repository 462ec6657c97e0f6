"""The order in which documents stay."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from factory.dedup.config import DedupConfig
from factory.dedup.priority import rank

pytestmark = pytest.mark.spark

SCHEMA = "doc_id string, quality double, fork_of string, stars long, created_at timestamp, n_bytes long"
OLD, NEW = datetime(2020, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)
BEST_FIRST = [
    ("good fork", 0.9, "x", 0, None, 1),
    ("well known", 0.5, None, 900, OLD, 1),
    ("new", 0.5, None, 8, NEW, 1),  # 8 and 11 stars are the same power of two
    ("old", 0.5, None, 11, OLD, 1),
    ("undated long", 0.5, None, 10, None, 50),
    ("undated short", 0.5, None, 10, None, 2),
    ("few stars", 0.5, None, 1, NEW, 9),
    ("no stars", 0.5, None, None, NEW, 9),
    ("fork", 0.5, "x", 5000, NEW, 9),
    ("unrated", None, None, 3, NEW, 9),
    ("not a number", float("nan"), None, 2, NEW, 9),  # as bad as unrated; fewer stars decide
]


def order(spark: SparkSession, rows: list[tuple[object, ...]], **settings: object) -> list[str]:
    documents = spark.createDataFrame(rows, SCHEMA)
    ranked = documents.orderBy(rank(documents, DedupConfig(kind="code", **settings).priority))
    return [row.doc_id for row in ranked.select("doc_id").collect()]


def test_columns_decide_one_after_the_other_and_nulls_come_last(spark: SparkSession) -> None:
    assert order(spark, BEST_FIRST[::-1]) == [row[0] for row in BEST_FIRST]


def test_equal_documents_have_one_order_other_than_by_name(spark: SparkSession) -> None:
    equal = [(f"d{number}", 0.5, None, 1, None, 1) for number in range(12)]
    assert order(spark, equal) == order(spark, equal[::-1]) != [row[0] for row in equal]


def test_the_order_is_a_setting(spark: SparkSession) -> None:
    by_length = order(spark, BEST_FIRST[4:7], priority=("length",))
    assert by_length == ["undated long", "few stars", "undated short"]
