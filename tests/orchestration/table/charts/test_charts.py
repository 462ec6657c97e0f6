"""Every table has a chart, and what a chart shows is what the table holds."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from factory.errors import ConfigurationError
from factory.lake.names import TableName
from factory.lake.schemas import clusters, dedup, depsort, filters, images, ingest, models, packing, synthesis
from factory.lake.schemas.base import TableSchema, columns
from factory.lake.schemas.dedup import BUCKETS, LARGEST_BUCKETS
from factory.lake.schemas.filters import FILTERED, signals_table
from factory.orchestration.table import drawing
from factory.orchestration.table.charts import counting
from factory.orchestration.table.charts import dedup as dedup_charts
from factory.orchestration.table.charts import packing as packing_charts
from factory.orchestration.table.charts.counting import SAMPLED_BYTES, Chart
from factory.orchestration.table.charts.filters import rejections
from factory.orchestration.table.charts.registry import CHARTS, FIGURES, chart_of, figures_of
from factory.orchestration.table.rows import Rows

STAGES = (ingest, images, filters, clusters, dedup, depsort, models, packing, synthesis)
SCHEMAS = {
    name: schema
    for stage in STAGES
    for name, schema in vars(stage).items()
    if isinstance(schema, TableSchema)
} | {
    "SIGNALS": signals_table(["line_punctuation", "words"]),
    "ONE_OF_SOMEBODYS_OWN": TableSchema(columns(pa.field("name", pa.string())), key=("name",)),
}

TABLE = TableName("raw", "web")

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
        title, _, image = (
            chart_of(TABLE, schema)(of(given))
            .image.removesuffix(")")
            .partition("](data:image/svg+xml;base64,")
        )
        assert title.removeprefix("![")
        picture = ElementTree.fromstring(base64.b64decode(image))
        assert float(picture.attrib["width"]) > 300
        assert float(picture.attrib["height"]) > 50


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What the last chart of bars showed, a star before a bar in the color of kept ones."""
    last: dict[str, int] = {}

    def bars(labels: list[str], values: list[int], title: str, kept: Collection[str] = ()) -> drawing.Drawing:
        last.update(zip((f"*{label}" if label in kept else label for label in labels), values, strict=True))
        return drawing.Drawing("", title)

    monkeypatch.setattr(drawing, "bars", bars)
    return last


FAILS = [("words", 1.0, 50.0), ("stop_words", 0.0, 2.0)]
BARS: dict[str, tuple[Chart, TableSchema | str, list[tuple[Any, ...]], dict[str, int]]] = {
    "a document counts for every rule it fails": (
        rejections,
        FILTERED,
        [("a", False, FAILS, [], None), ("b", False, FAILS[:1], [], None), ("c", True, [], [], None)],
        {"*kept": 1, "words": 2, "stop_words": 1},
    ),
    "counts fall between powers of two": (
        counting.powers_of_two("n", "title"),
        "n long",
        [(0,), (1,), (2,), (3,), (1023,), (1024,)],
        {"1": 2, "2": 2, "512": 1, "1K": 1},
    ),
    "documents are shown by tokens, then by bytes": (
        packing_charts.lengths,
        "n_tokens long, n_bytes long",
        [(3, 9), (2, 15), (1_024, 4_096), (0, None)],
        {"1 tokens": 1, "2 tokens": 2, "1K tokens": 1, "*1 bytes": 1, "*8 bytes": 2, "*4K bytes": 1},
    ),
    "a bucket counts once however many documents it has": (
        dedup_charts.bucket_sizes,
        BUCKETS,
        [("a", [1, 5], None), ("b", [1, 6], None), ("c", [2, 7], None)],
        {"1": 4, "2": 1},
    ),
    "the largest buckets are shown by how they begin": (
        dedup_charts.largest_buckets,
        LARGEST_BUCKETS,
        [("a", "web", 7, 1, "# $x\t=\n" + "y" * 90, None), ("b", "web", 9, 2, "\u6771 \x00 caf\u00e9", None)],
        {"web: \u6771 \x00 caf\u00e9": 9, "web: # $x = " + "y" * 90: 7},
    ),
    "groups are counted by size": (
        counting.sizes("component", "title"),
        "component string",
        [("x",), ("x",), ("y",), ("z",)],
        {"1": 2, "2": 1},
    ),
    "repositories show the giant component before and after topics": (
        dedup_charts.repositories,
        "component string, component_in_topic string, reason string",
        [("a", "a", "kept"), ("a", "a", "topic"), ("a", "b", "kept"), ("c", "c", "kept")],
        {
            "all": 4,
            "largest component 75.0%": 3,
            "largest in a topic 50.0%": 2,
            "*kept 75.0%": 3,
            "topic 25.0%": 1,
        },
    ),
    "the decisions of a dataset are shares of it": (
        dedup_charts.decided,
        "dataset string, reason string",
        [("web", "exact_copy"), ("code", "kept"), *[("web", "similar")] * 2, ("web", "kept")],
        {
            "*code: kept 100.0%": 1,
            "*web: kept 25.0%": 1,
            "web: similar 50.0%": 2,
            "web: exact_copy 25.0%": 1,
        },
    ),
    "edges fall in steps of similarity": (
        dedup_charts.similarities,
        "similarity double",
        [(0.801,), (0.819,), (0.82,), (1.0,)],
        {"0.80": 2, "0.82": 1, "1.00": 1},
    ),
    "partitions are in the order of their keys": (
        counting.by_partition,
        "partition string",
        [("b",), ("a",), ("b",)],
        {"a": 1, "b": 2},
    ),
    "a missing value is counted as none": (
        counting.counts("n", "title"),
        "n int",
        [(7,), (None,), (7,)],
        {"7": 2, "none": 1},
    ),
}


@pytest.mark.spark
@pytest.mark.parametrize("chart, schema, rows, bars", BARS.values(), ids=BARS)
def test_the_bars_of_a_chart_are_what_the_table_holds(
    spark: SparkSession,
    of: Of,
    shown: dict[str, int],
    chart: Chart,
    schema: TableSchema | str,
    rows: list[tuple[Any, ...]],
    bars: dict[str, int],
) -> None:
    columns = from_arrow_schema(schema.columns) if isinstance(schema, TableSchema) else schema
    chart(of(spark.createDataFrame(rows, columns)))
    assert list(shown.items()) == list(bars.items())


@pytest.mark.spark
def test_a_label_that_looks_like_a_formula_is_drawn(spark: SparkSession, of: Of) -> None:
    rows = [("a", "web", 7, 1, "a $\\frac{ b_ $ c \u6771", None)]
    drawn = dedup_charts.largest_buckets(
        of(spark.createDataFrame(rows, from_arrow_schema(LARGEST_BUCKETS.columns)))
    )
    assert drawn.image.startswith("![distinct texts")


@pytest.mark.spark
def test_of_many_groups_a_sample_is_counted_each_whole(spark: SparkSession, shown: dict[str, int]) -> None:
    frame = spark.range(3000).selectExpr("CAST(id % 1000 AS string) AS component")
    chart = counting.sizes("component", "title")(many(frame, 4 * SAMPLED_BYTES))
    assert chart.text == "title, of one in 4"
    assert list(shown) == ["2"]
    assert 200 < shown["2"] < 300


def test_every_schema_names_its_chart_and_every_chart_is_named() -> None:
    named = {schema.chart for schema in SCHEMAS.values()}
    assert {name for name, schema in SCHEMAS.items() if not schema.chart} == {
        *("TOPICS", "SIGNALS", "FACTS", "ONE_OF_SOMEBODYS_OWN"),
        *("EMBEDDER", "VECTORS", "CELLS", "PROXY"),
    }
    assert named - {""} == set(CHARTS)
    assert {schema.figures for schema in SCHEMAS.values()} - {""} == set(FIGURES)


def test_every_module_of_charts_is_registered() -> None:
    folder = Path(counting.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "counting", "totals", "registry"}
    assert modules == {name.partition(".")[0] for name in CHARTS}


def test_a_schema_that_names_no_chart_there_is_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"raw.web names chart `dedup.edge`.* Name one of clusters.balance"
    ):
        chart_of(TABLE, replace(FILTERED, chart="dedup.edge"))
    with pytest.raises(ConfigurationError, match=r"names figures `rows`"):
        figures_of(TABLE, replace(FILTERED, figures="rows"))


def test_a_chart_is_no_part_of_the_version_of_a_table() -> None:
    assert repr(replace(FILTERED, chart="", figures="")) == repr(FILTERED)
