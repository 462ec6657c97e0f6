"""The checks that `refine` puts on its tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.orchestration.checks import violations
from factory.orchestration.refine import A_PLACE_EACH


@pytest.mark.spark
@pytest.mark.parametrize(
    "rows, expected",
    [
        ([("a", "r", "1", 0), ("b", "r", "1", 1), ("c", "r", "2", 0), ("d", "s", None, 0)], 0),
        ([("a", "r", "1", 0), ("b", "r", "1", 0)], 1),
        ([("a", "r", None, 0), ("b", "r", None, 0)], 1),
        ([("a", None, "1", 0), ("b", None, "1", 0)], 0),  # each is alone, at its own place 0
    ],
)
def test_documents_of_a_repository_have_a_place_each(
    spark: SparkSession, rows: list[tuple[str, str | None, str | None, int]], expected: int
) -> None:
    frame = spark.createDataFrame(rows, "doc_id string, repository string, revision string, place long")
    assert violations(frame, [A_PLACE_EACH]) == {"a_place_each": expected}
