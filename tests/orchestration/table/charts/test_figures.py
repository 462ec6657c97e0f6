"""The figures that Dagster plots: they are what the published rows hold, wherever these are counted."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.dedup import BAGS, DECISIONS, REPOSITORIES
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.packing import PACKED, SEQUENCE_LENGTH, TOKENIZED
from factory.orchestration.table.charts.registry import figures_of
from factory.orchestration.table.rows import Rows

VERDICTS = "kept boolean, rejections array<struct<rule: string, value: double>>, without_value array<string>"
DECIDED = "kept boolean, reason string"
FIGURES: dict[str, tuple[TableSchema, str, list[tuple[Any, ...]], dict[str, Any]]] = {
    "verdicts": (
        FILTERED,
        VERDICTS,
        [(True, [], []), (False, [("words", 3.0)], []), (True, [], [])],
        {"kept": 2, "rejected": 1},
    ),
    "nothing but kept documents": (
        FILTERED,
        VERDICTS,
        [(True, [], [])],
        {"kept": 1, "rejected": 0},
    ),
    "documents without a value": (
        FILTERED,
        VERDICTS,
        [
            (True, [], ["quality", "code_words"]),
            (True, [], ["quality"]),
            (False, [("stars", None), ("words", 3.0)], ["quality"]),
            (False, [("stars", None)], ["a", "b"]),
        ],
        {
            "kept": 2,
            "rejected": 2,
            "pass a without a value": 1,
            "pass b without a value": 1,
            "pass code_words without a value": 1,
            "pass quality without a value": 3,
            "fail stars without a value": 2,
            "note": "without a value 3 pass quality, 2 fail stars, 1 pass a and 1 more",
        },
    ),
    "decisions, a document of a dropped topic is no duplicate": (
        DECISIONS,
        DECIDED,
        [(True, "kept"), (False, "similar"), (False, "exact_copy"), (False, "topic"), (True, "no_tokens")],
        {"kept": 2, "duplicates": 2},
    ),
    "repositories": (
        REPOSITORIES,
        DECIDED,
        [(True, "pinned"), (False, "duplicate")],
        {"kept": 1, "duplicates": 1},
    ),
    "tokens, and lengths that are even in bytes but not in tokens": (
        TOKENIZED,
        "n_tokens long, n_bytes long",
        [(4, 16), (5, 32), (6, 64), (7, 128)],
        {
            "tokens": 22,
            "length in tokens: entropy": 0.0,
            "length in tokens: effective number": 1.0,
            "length in tokens: share of the largest 1 %": 1.0,
            "length in bytes: entropy": 2.0,
            "length in bytes: effective number": 4.0,
            "length in bytes: share of the largest 1 %": 0.25,
        },
    ),
    "sequences": (PACKED, "n_tokens long", [(10,), (5,)], {"tokens": 15, "fill": 0.75}),
    "no sequence": (PACKED, "n_tokens long", [], {"tokens": 0}),
    "none": (BAGS, "n_tokens long", [(1,)], {}),
}


@pytest.mark.spark
@pytest.mark.parametrize("schema, columns, rows, figures", FIGURES.values(), ids=FIGURES)
def test_figures_are_what_the_rows_hold(
    spark: SparkSession,
    schema: TableSchema,
    columns: str,
    rows: list[tuple[Any, ...]],
    figures: dict[str, Any],
) -> None:
    frame = spark.createDataFrame(rows, columns)
    batches = frame.toArrow().to_batches()
    locally = Rows(lambda: frame, lambda names: (batch.select(list(names)) for batch in batches), 0)
    in_spark = Rows(lambda: frame, lambda names: None, 0)
    for given in (locally, in_spark):
        assert figures_of(TableName("raw", "web"), schema)(given, {SEQUENCE_LENGTH: "10"}) == figures
