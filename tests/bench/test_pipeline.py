"""The costs of a line: every asset's share, summed by stage, over what entered the stage."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from rich.console import Console

from bench.harness import Report, Row, WrongAnswer
from bench.packing.measure import quality_rows
from bench.packing.metrics import PackingMetrics
from bench.pipeline.fixed import Costs, Split, split
from bench.pipeline.measure import MB, Input, add_costs, by_stage, check, datasets_of, inputs, run
from bench.processes import ByKind, Span
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.base import TableSchema
from factory.lake.schemas.depsort import SORTED
from factory.lake.schemas.filters import FILTERED
from factory.lake.schemas.ingest import RAW, REJECTED
from factory.lake.schemas.packing import PACKED, TOKENIZED
from factory.lake.tables import Lake
from factory.orchestration.table.progress import emit
from factory.settings import Settings

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


PARTS = {
    "start": Split(5, 0),
    "packed.web": Split(2, 4),
    "raw.web": Split(1.5, 0.5),
    "tokenized.web": Split(0, 3),
}


def test_the_total_is_all_stages_with_the_start() -> None:
    report = Report([], "")
    add_costs(report, SPANS, {"ingest": Input(7, 4_000_000), "packing": Input(3, 1_800_000)}, PARTS)
    found = values(report.rows)
    assert found["pipeline.start.cpu"] == 5
    assert found["pipeline.total.cpu"] == 16
    assert found["pipeline.total.cpu.workers"] == 4.5
    assert found["pipeline.total.documents"] == 7
    assert found["pipeline.ingest.speed"] == 2.0  # 4 MB in 2 CPU seconds
    assert found["pipeline.packing.speed"] == 0.2
    assert found["pipeline.packing.peak_memory"] == 910 / MB
    assert found["pipeline.asset.tokenized.web.cpu"] == 3
    assert found["pipeline.asset.packed.web.cpu.fixed"] == 2
    assert found["pipeline.asset.packed.web.cpu.growing"] == 4
    assert (found["pipeline.total.cpu.fixed"], found["pipeline.total.cpu.growing"]) == (8.5, 7.5)
    until_deduplicated = (
        found["pipeline.deduplicated.cpu.fixed"],
        found["pipeline.deduplicated.cpu.growing"],
    )
    assert until_deduplicated == (6.5, 0.5)
    aims = {row.name: (row.aim, row.met) for row in report.rows if row.aim}
    assert aims == {
        "pipeline.total.cpu.fixed": ("<= 40", True),
        "pipeline.deduplicated.cpu.fixed": ("<= 25", True),
    }
    assert "pipeline.start.speed" not in found


def test_a_stage_faster_than_the_clock_has_a_speed_all_the_same() -> None:
    report = Report([], "")
    add_costs(report, [Span("raw.web")], {"ingest": Input(1, 10_000)}, {})
    found = values(report.rows)
    assert found["pipeline.ingest.speed"] == 1.0
    assert "pipeline.total.cpu.fixed" not in found


def test_a_line_through_two_sizes_divides_the_seconds() -> None:
    small = Costs(10, {"level": 3, "steep": 1, "both": 2, "noise": 5})
    large = Costs(40, {"level": 3, "steep": 4, "both": 3.5, "noise": 4})
    found = split(small, large)
    assert found["level"] == Split(3, 0)
    assert found["steep"] == Split(0, 4)
    assert found["both"] == Split(1.5, 2)  # 1.5 s, and 0.05 s for each MB
    assert found["noise"] == Split(4, 0)


def test_one_size_gives_no_line() -> None:
    with pytest.raises(ValueError, match="10 MB are not more than 10 MB"):
        split(Costs(10, {}), Costs(10, {}))


def test_packing_is_judged_by_three_aims() -> None:
    good = PackingMetrics(
        n_documents=100,
        n_tokens=99_500,
        n_sequences=100,
        sequence_length=1_000,
        n_fitting=100,
        n_fitting_split=1,
        n_dependencies=40,
        n_visible=21,
        n_visible_next_fit=20,
    )
    rows = {row.name: row for row in quality_rows("p", good)}
    aims = {name: (row.value, row.met) for name, row in rows.items() if row.aim}
    assert aims == {
        "p.fill_of_best": (1.0, True),
        "p.fitting_split": (0.01, True),
        "p.visible_against_next_fit": (1.05, True),
    }
    assert (rows["p.visible"].value, rows["p.visible_next_fit"].value, rows["p.edges"].value) == (
        0.525,
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


def told(table: str, command: list[str]) -> dg.AssetsDefinition:
    """An asset that tells of itself as a table's does, and whose work is `command`."""
    namespace, name = table.split(".")

    @dg.asset(key=[namespace, name])
    def asset() -> None:
        emit(table, "started")
        subprocess.run(command, check=True)
        emit(table, "published", 1)

    return asset


def test_a_run_has_a_span_for_every_asset_and_one_for_the_start(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    assets = [
        told("filtered.web", [sys.executable, "-I", "-S", "-c", burn]),
        told("packed.web", [sys.executable, "-I", "-S", "-c", ""]),
    ]
    defined = dg.Definitions(assets=assets, executor=dg.in_process_executor)
    keys = [key for asset in assets for key in asset.keys]
    meter = run(defined, Settings(home=tmp_path), keys, Console(file=StringIO()))
    spans = {span.name: span for span in meter.spans}
    assert set(spans) == {"start", "filtered.web", "packed.web"}
    assert meter.spans[0].name == "start"
    assert spans["filtered.web"].cpu_s.total - spans["packed.web"].cpu_s.total > 0.2
    assert datasets_of(keys) == ["web"]


def write(lake: Lake, name: TableName, schema: TableSchema, rows: list[dict[str, object]]) -> None:
    """Publish rows; a required column they lack is empty text or zero."""
    empty = {
        column.name: "" if column.type == "string" else 0 for column in schema.columns if not column.nullable
    }
    table = pa.Table.from_pylist([empty | row for row in rows], schema=schema.columns)
    lake.create(name, schema).append(table)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`web`: documents of 10, 100 and 1,000 bytes, of which the larger two are kept, and a bad record."""
    made = Lake(Settings(home=tmp_path))
    sizes = {"a": 10, "b": 100, "c": 1_000}
    write(made, names.raw("web"), RAW, [{"doc_id": it, "n_bytes": n} for it, n in sizes.items()])
    write(made, names.rejected("web"), REJECTED, [{"doc_id": "d", "n_bytes": 5}])
    write(made, names.filtered("web"), FILTERED, [{"doc_id": it, "kept": n > 10} for it, n in sizes.items()])
    return made


def test_the_input_of_a_stage_is_the_text_it_is_given(lake: Lake) -> None:
    given = {"ingest": Input(4, 1_115), "filters": Input(3, 1_110), "dedup": Input(2, 1_100)}
    assert inputs(lake, ["web"]) == given
    write(lake, names.deduplicated("web"), RAW, [{"doc_id": "c", "n_bytes": 1_000}])
    later = {"packing": Input(1, 1_000)}
    assert inputs(lake, ["web"]) == given | later
    write(lake, names.sorted_table("web"), SORTED, [{"doc_id": "c", "n_bytes": 1_000}])
    assert inputs(lake, ["web"]) == given | later | {"depsort": Input(1, 1_000)}


def test_a_lost_document_is_a_wrong_answer(lake: Lake) -> None:
    write(lake, names.deduplicated("web"), RAW, [{"doc_id": it} for it in ("b", "c")])
    write(lake, names.packed("web"), PACKED, [{"tokens": b"", "segments": []}])
    write(lake, names.tokenized("web"), TOKENIZED, [{"doc_id": "b", "tokens": b""}])
    with pytest.raises(WrongAnswer, match=r"tokenized\.web holds every document of deduplicated\.web"):
        check(Report([], ""), lake, ["web"])
    write(lake, names.tokenized("web"), TOKENIZED, [{"doc_id": "c", "tokens": b""}])
    report = Report([], "")
    check(report, lake, ["web"])
    assert len(report.answers) == 2
    write(lake, names.filtered("web"), FILTERED, [{"doc_id": "a", "kept": True}])
    with pytest.raises(WrongAnswer, match=r"filtered\.web holds every document of raw\.web once"):
        check(Report([], ""), lake, ["web"])
