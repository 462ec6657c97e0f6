"""Sentences on keys that several rows have."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.lake.schemas.dedup import SIGNATURES
from factory.lake.schemas.ingest import RAW
from factory.orchestration.table.checks import repeated

pytestmark = pytest.mark.spark


def test_documents_of_two_datasets_with_one_id_are_named_with_the_datasets(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("1a", "books"), ("2b", "books"), ("1a", "wiki")], "doc_id string, dataset string"
    )
    assert repeated(rows, SIGNATURES) == (
        "1a in books and wiki: documents with the same source and key have the same id, so give one of these "
        "datasets another `source`, or its repository's folder another name"
    )


def test_rows_of_one_dataset_with_one_key_are_named_by_it(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("x.jsonl", "1"), ("x.jsonl", "2"), ("x.jsonl", "1")], "source string, key string"
    )
    assert repeated(rows, RAW) == "x.jsonl / 1: give every row a key of its own"
    signed = spark.createDataFrame([("1a", "books"), ("1a", "books")], "doc_id string, dataset string")
    assert repeated(signed, SIGNATURES) == "1a: give every row a key of its own"
