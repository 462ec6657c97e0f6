"""Every table has a chart, and what a chart shows is what the table holds."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.lake import schemas
from factory.lake.schemas import TableSchema, columns, signals_schema
from factory.orchestration.asset import charts
from factory.orchestration.asset.charts import chart_of
from factory.orchestration.asset.rows import Rows

SCHEMAS = {name: schema for name, schema in vars(schemas).items() if isinstance(schema, TableSchema)} | {
    "SIGNALS": signals_schema(["line_punctuation", "words"]),
    "ONE_OF_SOMEBODYS_OWN": TableSchema(columns(pa.field("name", pa.string())), key=("name",)),
}


Of = Callable[[DataFrame], Rows]


def value(kind: pa.DataType, row: int) -> Any:
    if pa.types.is_string(kind):
        return '{"model": {"vocab": {"a": 0, "bc": 1}}}'
    if pa.types.is_binary(kind):
        return b"bytes"
    if pa.types.is_boolean(kind):
        return row == 0
    if pa.types.is_timestamp(kind):
        return datetime(2026, 1, 1, tzinfo=UTC)
    if pa.types.is_map(kind):
        return {}
    if pa.types.is_list(kind):
        return []
    return row + 1 if pa.types.is_integer(kind) else row / 2


def many(frame: DataFrame, n_bytes: int = 0) -> Rows:
    """Rows that are asked of Spark."""
    return Rows(lambda: frame, lambda columns: None, n_bytes)


def few(frame: DataFrame) -> Rows:
    """Rows that are read here."""
    return Rows(lambda: frame, lambda columns: iter(frame.select(*columns).toArrow().to_batches()), 0)


@pytest.fixture(params=[many, few])
def of(request: pytest.FixtureRequest) -> Of:
    """A chart shows the same wherever it counts."""
    return request.param


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_table_has_a_picture(spark: SparkSession, of: Of, name: str) -> None:
    schema = SCHEMAS[name]
    rows = [tuple(value(field.type, row) for field in schema.columns) for row in range(2)]
    frame = spark.createDataFrame(rows, from_arrow_schema(schema.columns))
    for given in (frame, frame.limit(0)):
        title, _, image = chart_of(schema)(of(given)).removesuffix(")").partition("](data:image/png;base64,")
        assert title.removeprefix("![")
        width, height = struct.unpack(">II", base64.b64decode(image)[16:24])
        assert width > 300
        assert height > 50


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the last chart of bars showed."""
    last: dict[str, int] = {}

    def bars(labels: list[str], values: list[int], title: str) -> str:
        last.update(zip(labels, values, strict=True))
        return title

    monkeypatch.setattr(charts, "bars", bars)
    return last


@pytest.mark.spark
def test_a_document_counts_for_every_rule_it_fails(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    fails = [("words", 1.0, 50.0), ("stop_words", 0.0, 2.0)]
    rows = [("a", False, fails, None), ("b", False, fails[:1], None), ("c", True, [], None)]
    charts.rejections(of(spark.createDataFrame(rows, from_arrow_schema(schemas.FILTERED.columns))))
    assert shown == {"kept": 1, "words": 2, "stop_words": 1}


@pytest.mark.spark
def test_counts_fall_between_powers_of_two(spark: SparkSession, of: Of, shown: dict[str, int]) -> None:
    frame = spark.createDataFrame([(0,), (1,), (2,), (3,), (1023,), (1024,)], "n long")
    charts.powers_of_two("n", "title")(of(frame))
    assert shown == {"1": 2, "2": 2, "512": 1, "1K": 1}


@pytest.mark.spark
def test_a_bucket_counts_once_however_many_documents_it_has(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    rows = [("a", [1, 5], None), ("b", [1, 6], None), ("c", [2, 7], None)]
    charts.bucket_sizes(of(spark.createDataFrame(rows, from_arrow_schema(schemas.BUCKETS.columns))))
    assert shown == {"1": 4, "2": 1}


@pytest.mark.spark
def test_the_largest_buckets_are_shown_by_how_they_begin(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    rows = [
        ("a", "web", 7, 1, "# $x\t=\n" + "y" * 90, None),
        ("b", "web", 9, 2, "\u6771 \x00 caf\u00e9", None),
    ]
    charts.largest_buckets(
        of(spark.createDataFrame(rows, from_arrow_schema(schemas.LARGEST_BUCKETS.columns)))
    )
    assert list(shown.items()) == [("web: ? ? caf\u00e9", 9), ("web: # \\$x = " + "y" * 33, 7)]


@pytest.mark.spark
def test_a_label_that_looks_like_a_formula_is_drawn(spark: SparkSession, of: Of) -> None:
    rows = [("a", "web", 7, 1, "a $\\frac{ b_ $ c \u6771", None)]
    drawn = charts.largest_buckets(
        of(spark.createDataFrame(rows, from_arrow_schema(schemas.LARGEST_BUCKETS.columns)))
    )
    assert drawn.startswith("![distinct texts")


@pytest.mark.spark
def test_groups_are_counted_by_size(spark: SparkSession, of: Of, shown: dict[str, int]) -> None:
    frame = spark.createDataFrame([("x",), ("x",), ("y",), ("z",)], "component string")
    charts.sizes("component", "title")(of(frame))
    assert shown == {"1": 2, "2": 1}


@pytest.mark.spark
def test_repositories_show_the_giant_component_before_and_after_topics(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    rows = [("a", "a", "kept"), ("a", "a", "topic"), ("a", "b", "kept"), ("c", "c", "kept")]
    charts.repositories(
        of(spark.createDataFrame(rows, "component string, component_in_topic string, reason string"))
    )
    assert shown == {
        "all": 4,
        "largest component 75.0%": 3,
        "largest in a topic 50.0%": 2,
        "kept 75.0%": 3,
        "topic 25.0%": 1,
    }


@pytest.mark.spark
def test_of_many_groups_a_sample_is_counted_each_whole(spark: SparkSession, shown: dict[str, int]) -> None:
    frame = spark.range(3000).selectExpr("CAST(id % 1000 AS string) AS component")
    title = charts.sizes("component", "title")(many(frame, 4 * charts.SAMPLED_BYTES))
    assert title == "title, of one in 4"
    assert list(shown) == ["2"]
    assert 200 < shown["2"] < 300


@pytest.mark.spark
def test_the_decisions_of_a_dataset_are_shares_of_it(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    rows = [("web", "kept"), ("code", "kept"), ("web", "similar"), ("web", "kept")]
    charts.decided(of(spark.createDataFrame(rows, "dataset string, reason string")))
    assert list(shown.items()) == [
        ("code: kept 100.0%", 1),
        ("web: kept 66.7%", 2),
        ("web: similar 33.3%", 1),
    ]


@pytest.mark.spark
def test_edges_fall_in_steps_of_similarity(spark: SparkSession, of: Of, shown: dict[str, int]) -> None:
    charts.similarities(of(spark.createDataFrame([(0.801,), (0.819,), (0.82,), (1.0,)], "similarity double")))
    assert shown == {"0.80": 2, "0.82": 1, "1.00": 1}


@pytest.mark.spark
def test_a_value_that_is_missing_is_counted_as_none(
    spark: SparkSession, of: Of, shown: dict[str, int]
) -> None:
    charts.counts("n", "title")(of(spark.createDataFrame([(7,), (None,), (7,)], "n int")))
    assert shown == {"7": 2, "none": 1}
