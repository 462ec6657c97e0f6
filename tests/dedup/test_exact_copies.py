"""Exact copies: of documents with equal hashes the first by key stays."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.dedup.exact_copies import exact_copies
from factory.lake.schemas.dedup import DECISIONS


@pytest.mark.spark
def test_of_equal_documents_the_first_by_key_stays(spark: SparkSession) -> None:
    rows = [("1", "c", "x", None), ("2", "a", "x", None), ("3", "b", "y", "p"), ("4", "d", "x", None)]
    documents = spark.createDataFrame(
        rows, "doc_id string, key string, content_hash string, partition string"
    )
    decisions = exact_copies(documents, "pics")
    assert set(decisions.columns) == set(DECISIONS.names)
    by_id = {
        row.doc_id: (row.kept, row.reason, row.duplicate_of, row.component) for row in decisions.collect()
    }
    assert by_id == {
        "1": (False, "exact_copy", "2", "2"),
        "2": (True, "kept", None, "2"),
        "3": (True, "kept", None, None),
        "4": (False, "exact_copy", "2", "2"),
    }
