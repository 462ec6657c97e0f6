"""The largest buckets with their best documents, counted by hand."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import DataFrame, SparkSession

from factory.dedup.config import DedupConfig
from factory.dedup.largest_buckets import SHOWN, LargestBucketsConfig, largest_buckets
from factory.lake.schemas.dedup import BUCKETS, LARGEST_BUCKETS
from factory.lake_spark.audit import spark_schema
from tests.dedup.corpus import arrow, document
from tests.frames import assert_declared

pytestmark = pytest.mark.spark

CONFIG = DedupConfig(kind="code").part(LargestBucketsConfig)


def shown(
    spark: SparkSession, rows: list[dict[str, object]], members: dict[tuple[int, int], str]
) -> DataFrame:
    """The largest buckets of documents in buckets (band, bucket), named by the keys of their members."""
    ids = {str(row["key"]): row["doc_id"] for row in rows}
    alone = itertools.count(1 << 40)
    bands = range(1 + max(band for band, _ in members))
    named = [
        (name, [_bucket(members, key, band, next(alone)) for band in bands], None)
        for key, name in ids.items()
    ]
    buckets = spark.createDataFrame(named, spark_schema(BUCKETS))
    found = largest_buckets(spark.createDataFrame(arrow(rows)), buckets, CONFIG)
    assert_declared(found, LARGEST_BUCKETS)
    return found


def _bucket(members: dict[tuple[int, int], str], key: str, band: int, alone: int) -> int:
    """The bucket of a document in a band: one of `members`, or one that it has to itself."""
    return next((bucket for (at, bucket), keys in members.items() if at == band and key in keys), alone)


def test_a_bucket_is_shown_by_its_best_document_once_for_all_bands(spark: SparkSession) -> None:
    rows = [document(key, key * 300, stars=4**number) for number, key in enumerate("abcdef")]
    members = {(0, 1): "abc", (1, 2): "bc", (2, 3): "de", (3, 5): "abcd"}
    found = {row.text[0]: row for row in shown(spark, rows, members).collect()}
    counts = {key: (row.members, row.bands) for key, row in found.items()}
    assert counts == {"c": (3, 2), "d": (4, 1), "e": (2, 1)}
    assert found["c"].doc_id == rows[2]["doc_id"]
    assert {row.text for row in found.values()} == {key * 200 for key in "cde"}


def test_only_the_largest_buckets_are_shown(spark: SparkSession) -> None:
    names = [chr(0x4E00 + number) for number in range(3 * SHOWN)]
    rows = [document(name, f"text {name}", n_bytes=number) for number, name in enumerate(names)]
    members = {(number, number): "".join(names[: number + 1]) for number in range(1, len(names))}
    found = sorted((row.members, row.text) for row in shown(spark, rows, members).collect())
    assert found == [(number + 1, f"text {names[number]}") for number in range(2 * SHOWN, 3 * SHOWN)]


def test_a_bucket_of_one_is_not_shown(spark: SparkSession) -> None:
    assert shown(spark, [document("a", "text")], {(0, 1): "a", (1, 2): "a"}).collect() == []
