"""The checks that `refine` puts on its tables."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.lake.lineage import Lineage
from factory.lake.names import TableName
from factory.lake.schemas.packing import TOKENIZER_ID
from factory.lake.tables import Published
from factory.orchestration.chain.depsort import UNIQUE_POSITIONS
from factory.orchestration.chain.packing import require_tokens_of
from factory.orchestration.table.checks import violations


@pytest.mark.spark
@pytest.mark.parametrize(
    "rows, expected",
    [
        ([("a", "r", "1", 0), ("b", "r", "1", 1), ("c", "r", "2", 0), ("d", "s", None, 0)], 0),
        ([("a", "r", "1", 0), ("b", "r", "1", 0)], 1),
        ([("a", "r", None, 0), ("b", "r", None, 0)], 1),
        ([("a", None, "1", 0), ("b", None, "1", 0)], 0),  # each is alone, at position 0
    ],
)
def test_documents_of_a_repository_have_unique_positions(
    spark: SparkSession, rows: list[tuple[str, str | None, str | None, int]], expected: int
) -> None:
    frame = spark.createDataFrame(rows, "doc_id string, repository string, revision string, position long")
    assert violations(frame, [UNIQUE_POSITIONS]) == {"unique_positions": expected}


@pytest.mark.parametrize(
    "made_by, words", [("2" * 32, "by tokenizer 222222222222"), (None, "before tables recorded")]
)
def test_tokens_of_another_tokenizer_are_not_packed(made_by: str | None, words: str) -> None:
    said = {TOKENIZER_ID: made_by} if made_by else {}
    tokenized = Published(TableName("tokenized", "web"), 1, 1, 1, 1, Lineage("tokenized.web", "r", "1"), said)
    with pytest.raises(ConfigurationError, match=f"tokenized.web was made {words}.* is 111111111111 now"):
        require_tokens_of(tokenized, "small", "1" * 32)
