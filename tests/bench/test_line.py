"""The costs of a line: every asset's share, summed by stage, over what entered the stage."""

from __future__ import annotations

from io import StringIO

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from bench.harness import Report, Row
from bench.line import MB, Input, add_costs, by_stage, check, datasets_of, inputs, run
from bench.packing import quality_rows
from bench.processes import ByKind, Span
from factory.lake import names
from factory.lake.schemas import FILTERED, RAW, REJECTED
from factory.lake.tables import Lake
from factory.orchestration.line import definitions
from factory.orchestration.publication import Tables
from factory.orchestration.table_asset import table_asset
from factory.packing.metrics import PackingMetrics
from factory.settings import Settings

TEXTS = {"a": 10, "b": 100, "c": 1_000}  # document and bytes of its text
SPANS = [
    Span("start", 5.0, ByKind(1, 4, 0), ByKind(100, 400, 0)),
    Span("packed.web", 1.0, ByKind(1, 2, 3), ByKind(100, 800, 10)),
    Span("raw.web", 2.0, ByKind(0.5, 1, 0.5), ByKind(100, 500, 50)),
    Span("tokenized.web", 3.0, ByKind(1, 1, 1), ByKind(100, 700, 90)),
]


def values(rows: list[Row]) -> dict[str, float]:
    return {row.name: row.value for row in rows}


def test_assets_are_summed_by_stage_in_the_order_of_the_line() -> None:
    stages = by_stage(SPANS)
    assert list(stages) == ["start", "ingest", "packing"]
    assert stages["packing"].wall_s == 4.0
    assert stages["packing"].cpu_s == ByKind(2, 3, 4)
    assert stages["packing"].peak == ByKind(100, 800, 10)


def test_the_total_is_all_stages_without_the_start() -> None:
    report = Report([], "")
    add_costs(report, SPANS, {"ingest": Input(7, 4_000_000), "packing": Input(3, 1_800_000)})
    found = values(report.rows)
    assert found["line.start.cpu"] == 5
    assert found["line.total.cpu"] == 11
    assert found["line.total.cpu.workers"] == 4.5
    assert found["line.total.documents"] == 7
    assert found["line.ingest.speed"] == 2.0  # 4 MB in 2 CPU seconds
    assert found["line.packing.speed"] == 0.2
    assert found["line.packing.peak_memory"] == 910 / MB
    assert found["line.asset.tokenized.web.cpu"] == 3
    assert "line.start.speed" not in found


def test_a_stage_faster_than_the_clock_has_a_speed_all_the_same() -> None:
    report = Report([], "")
    add_costs(report, [Span("raw.web")], {"ingest": Input(1, 10_000)})
    assert values(report.rows)["line.ingest.speed"] == 1.0


def test_packing_is_judged_by_three_aims() -> None:
    good = PackingMetrics(
        n_documents=100,
        n_tokens=99_500,
        n_sequences=100,
        sequence_length=1_000,
        n_fitting=100,
        n_fitting_split=1,
        n_dependencies=40,
        n_visible=19,
        n_visible_next_fit=20,
    )
    rows = {row.name: row for row in quality_rows("p", good)}
    aims = {name: (row.value, row.met) for name, row in rows.items() if row.aim}
    assert aims == {
        "p.fill_of_best": (1.0, True),
        "p.fitting_split": (0.01, True),
        "p.visible_against_next_fit": (0.95, True),
    }
    assert (rows["p.visible"].value, rows["p.visible_next_fit"].value, rows["p.edges"].value) == (
        0.475,
        0.5,
        40,
    )


def test_prose_without_dependencies_has_no_row_on_them() -> None:
    prose = PackingMetrics(10, 900, 2, 500, 10, 0, 0, 0, 0)
    assert [row.name for row in quality_rows("p", prose)] == [
        "p.sequences",
        "p.sequence_length",
        "p.fill",
        "p.fill_of_best",
        "p.fitting_split",
    ]


def two_assets(dataset: str) -> list[dg.AssetsDefinition]:
    """`raw` with three documents and a bad record, `filtered` that keeps two of them."""

    @table_asset(namespace="raw", name=dataset, group_name="test", schema=RAW, beside={"rejected": REJECTED})
    def raw(context, pyspark) -> Tables:  # type: ignore[no-untyped-def]
        documents = pyspark.spark_session.createDataFrame(
            [(name, name, name, "", n_bytes, "text/plain") for name, n_bytes in TEXTS.items()],
            "doc_id string, source string, key string, content_hash string, n_bytes long, media_type string",
        )
        bad = pyspark.spark_session.createDataFrame(
            [("d", "d", "d", "line 4", "not_json", "No JSON.", 1_000)],
            "doc_id string, source string, key string, place string, reason string, detail string, "
            "n_bytes long",
        )
        return Tables(documents, {"rejected": bad})

    @table_asset(
        namespace="filtered",
        name=dataset,
        group_name="test",
        schema=FILTERED,
        upstream={"documents": names.raw(dataset)},
    )
    def filtered(documents: DataFrame) -> DataFrame:
        return documents.selectExpr("doc_id", "n_bytes > 10 AS kept")

    return [raw, filtered]


@pytest.mark.spark
def test_a_real_run_is_attributed_to_its_assets(
    spark: SparkSession, lake_settings: Settings, unique: str
) -> None:
    defined = definitions(two_assets(unique), lake_settings)
    keys = sorted(defined.resolve_asset_graph().get_all_asset_keys())
    meter = run(defined, lake_settings, keys, Console(file=StringIO()))
    assert [span.name for span in meter.spans] == ["start", f"raw.{unique}", f"filtered.{unique}"]
    for span in meter.spans[1:]:
        assert 0 < span.cpu_s.jvm < 60
        assert span.peak.jvm > 50 * MB
    assert sum(span.cpu_s.workers for span in meter.spans) > 0  # fingerprints are computed in Python workers

    lake = Lake(lake_settings)
    assert datasets_of(keys) == [unique]
    assert inputs(lake, [unique]) == {
        "ingest": Input(4, 1_110 + 1_000),
        "filters": Input(3, 1_110),
        "dedup": Input(2, 1_100),
    }
    report = Report([], "")
    check(report, lake, [unique])
    assert report.answers == [f"filtered.{unique} has every document of raw.{unique} once"]
