"""A stage that registers its faces itself is seen everywhere, and no file of the product changes for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from factory.cli.diff import show as show_diff
from factory.cli.summary import show_summary
from factory.cli.trace import document_tree
from factory.errors import ConfigurationError
from factory.explain.dataset_version import DatasetVersion
from factory.explain.diff import diff
from factory.explain.export import Export
from factory.explain.named_state import named_state
from factory.explain.report import report_of_lake
from factory.explain.summary import summarize
from factory.explain.tables import sample
from factory.explain.trace import trace_documents
from factory.filters.rounds import Round
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.ingest import RAW
from factory.lake.tables import Lake
from factory.orchestration.chain.dedup.group import Deduplication, dedup_group
from factory.orchestration.chain.filters import Filters
from factory.orchestration.chain.link import Chain, linked
from factory.orchestration.chain.models.tokenizer import tokenizer
from factory.orchestration.chain.packing import Packing
from factory.orchestration.host.instance import open_instance
from factory.orchestration.table.table_asset import table_asset
from factory.packing.pack import PackConfig
from factory.settings import Settings
from tests.brevity import BREVITY, Brevity, registered
from tests.orchestration.runs import reads, run

TEXTS = {  # by ids that no other test of the lake has
    "brief_one": "word",  # fails the round of filters
    "brief_short": "three short words",
    "brief_long": "a text of more than forty characters, of which one more resembles it",
    "brief_other": "quite another text, which is longer than forty characters as well",
    "brief_copy": "a text of more than forty characters, of which one more resembles it",
}
ROUNDS = [Round(rules=["word_count"], limits={"word_count": [3, 100]})]


@pytest.fixture(scope="module")
def stage() -> Iterator[None]:
    with registered():
        yield


@pytest.fixture(scope="module")
def dataset(spark: SparkSession, lake_settings: Settings, stage: None) -> str:
    """A dataset in the lake whose chain has the stage between filters and deduplication."""
    name = "brief"

    @table_asset(namespace="raw", name=name, asset_group="test", schema=RAW)
    def raw(pyspark):  # type: ignore[no-untyped-def]
        columns = ("source", "key", "content_hash", "media_type")
        rows = [
            {
                **dict.fromkeys(columns, key),
                "doc_id": key,
                "content_hash": text,
                "text": text,
                "n_bytes": len(text),
            }
            for key, text in TEXTS.items()
        ]
        return pyspark.spark_session.createDataFrame(rows)

    before = linked(Chain.from_raw(name), [Filters(ROUNDS), Brevity(least=40)])
    group = dedup_group(name, [before], kind="prose")
    unpacked = linked(before, [Deduplication(group)])
    chain = linked(unpacked, [Packing("brief_tokenizer", PackConfig(sequence_length=64))])
    trained = tokenizer("brief_tokenizer", [unpacked], vocabulary=300)
    with open_instance(lake_settings) as instance:
        assert run(lake_settings, raw, *group.assets, *chain, trained, instance=instance).success
    return name


def shown(print_to: object, *arguments: object, **options: object) -> str:
    console = Console(file=StringIO(), width=200)
    print_to(*arguments, console, **options)  # type: ignore[operator]
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_a_group_compares_what_the_chain_before_it_keeps(stage: None) -> None:
    before = linked(Chain.from_raw("web"), [Filters(ROUNDS), Brevity(least=40)])
    group = dedup_group("web", [before], kind="prose")
    assert f"{BREVITY}.web" in reads(group.assets)["dedup.web_bags"]
    assert "filtered.web" not in reads(group.assets)["dedup.web_bags"]
    with pytest.raises(
        ConfigurationError, match=r"compares .* that filtered.web keeps, .* that brevity.web keeps"
    ):
        Deduplication(dedup_group("web", ["web"], kind="prose")).extend(before)


@pytest.mark.invariant(
    "A stage costs eight files of its own and four edits, and registers itself: one made of a single file"
    " is seen by trace, sample, diff, export, summary, report and Dagster's charts."
)
@pytest.mark.spark
def test_trace_tells_the_rule_of_the_stage(lake_settings: Settings, dataset: str) -> None:
    short, one, other = trace_documents(Lake(lake_settings), ["brief_short", "brief_one", "brief_other"])
    assert (short.outcome, one.outcome, other.outcome) == ("too_short", "filtered", "packed")
    assert short.reason == "rejected by 1 rule(s): characters is 17 (limit 40)"
    lines = shown(lambda trace, console: console.print(document_tree(trace)), short).splitlines()
    assert any(f"filtered.{dataset} at" in line and "passes every rule" in line for line in lines)
    assert any(f"{BREVITY}.{dataset} at" in line and "fails 1 rule(s)" in line for line in lines)
    assert f"{BREVITY}.{dataset}" in other.tables
    assert f"{BREVITY}.{dataset}" not in one.tables


@pytest.mark.spark
def test_sample_shows_what_the_stage_rejected(lake_settings: Settings, dataset: str) -> None:
    lake = Lake(lake_settings)
    rows = sample(lake, named_state(lake, f"{BREVITY}.{dataset}"), 5, 0, rejected_by="characters")
    assert [(row["doc_id"], row["text"]) for row in rows] == [("brief_short", TEXTS["brief_short"])]


@pytest.mark.spark
def test_diff_names_the_rule_of_the_stage(lake_settings: Settings, dataset: str) -> None:
    difference = diff(Lake(lake_settings), f"filtered.{dataset}", f"deduplicated.{dataset}", 3)
    causes = {
        cause.cause: [example.doc_id for example in cause.examples] for cause in difference.leave.causes
    }
    assert causes["characters"] == ["brief_short"]
    assert set(causes) == {"characters", "exact_copy"}
    assert "17 (limit 40)" in shown(show_diff, difference, as_json=False)


@pytest.mark.spark
def test_export_lists_what_the_stage_removed(lake_settings: Settings, dataset: str, tmp_path: Path) -> None:
    lake = Lake(lake_settings)
    plan = Export(lake, DatasetVersion.newest(lake, dataset), removed=True, text=False)
    rows_read: list[int] = []
    plan.write(tmp_path / "all.jsonl", rows_read.append)
    assert sum(rows_read) == plan.n_rows
    rows = {row["doc_id"]: row for row in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())}
    reasons = {doc_id: row["reason"] for doc_id, row in rows.items()}
    assert (reasons["brief_one"], reasons["brief_short"], reasons["brief_other"]) == (
        "filtered",
        "too_short",
        "kept",
    )
    assert {reasons["brief_long"], reasons["brief_copy"]} == {"kept", "exact_copy"}
    assert rows["brief_short"]["rejections"] == [{"rule": "characters", "value": 17.0, "threshold": 40.0}]


@pytest.mark.spark
def test_the_summary_has_the_rows_and_figures_of_the_stage(lake_settings: Settings, dataset: str) -> None:
    summary = summarize(Lake(lake_settings), [dataset], [dataset])
    rows = {stage.table: (stage.rows_in, stage.rows_out) for stage in summary.stages}
    assert rows[f"{BREVITY}.{dataset}"] == (4, 3)
    assert rows[f"deduplicated.{dataset}"] == (3, 2)
    assert summary.plain()[BREVITY] == {dataset: {"characters": 1}}
    text = shown(show_summary, summary)
    assert "Short documents" in text
    assert "characters 1" in text


@pytest.mark.spark
def test_report_and_dagster_show_the_chart_of_the_stage(lake_settings: Settings, dataset: str) -> None:
    with open_instance(lake_settings) as instance:
        report = report_of_lake(Lake(lake_settings), instance)
    [table] = [table for table in report.tables if table.table == TableName(BREVITY, dataset)]
    assert table.picture is not None
    assert table.picture.title == "documents by whether they are long enough"
    assert (table.figures["kept"], table.figures["rejected"]) == (3, 1)
    assert f"{BREVITY}.{dataset}" in {stage.table for stage in report.stages}
    assert names.deduplicated(dataset) in {table.table for table in report.tables}
