"""What a run prints at its end: checks that only warn, with their figures, and how many tables were made."""

from __future__ import annotations

from io import StringIO

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from factory.cli.runs import RunFailed, RunReport, execute
from factory.lake.schemas import COMPONENTS
from factory.orchestration.checks import alarm, holds, layout
from factory.orchestration.line import definitions
from factory.orchestration.table_asset import table_asset
from factory.settings import Settings

CHECKS = [
    alarm("few", "count(1) - 1", "There is one row at most.", "doc_id"),
    alarm("short", "avg(length(doc_id))", "An id is short.", "doc_id", limit=2.5),
    alarm("long_enough", "avg(length(doc_id))", "An id is shorter than ten.", "doc_id", limit=10),
    layout("odd", lambda table, at: ["file [a] is odd", "file b is odd"], "No file is odd."),
]


@pytest.mark.spark
def test_checks_that_warn_are_printed_with_their_figures_and_counted(
    spark: SparkSession, lake_settings: Settings, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")

    def run(*more: object) -> tuple[RunReport | RunFailed, list[str]]:
        @table_asset(
            namespace="dedup", name=unique, group_name="test", schema=COMPONENTS, checks=[*CHECKS, *more]
        )
        def made(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
            return pyspark.spark_session.createDataFrame([("abc", "1"), ("abcd", "1")], COLUMNS)

        said = StringIO()
        defined, keys = definitions([made], lake_settings), [dg.AssetKey(["dedup", unique])]
        ended: RunReport | RunFailed
        try:
            ended = execute(defined, lake_settings, keys, Console(file=said), reuse=False)
        except RunFailed as failed:
            ended = failed
        return ended, [line for line in said.getvalue().splitlines() if line]

    warned = [
        f"warning  dedup.{unique}: few (1 violation). There is one row at most.",
        f"warning  dedup.{unique}: short (3.5, at most 2.5). An id is short.",
        f"warning  dedup.{unique}: odd (2 violations). No file is odd.",
        "         file [a] is odd",
        "         file b is odd",
    ]
    report, lines = run()
    assert isinstance(report, RunReport)
    assert lines[1:] == warned
    assert lines[0].startswith("made")
    assert report.closing() == "1 tables made, 0 kept as they were, 3 warnings."

    failed, lines = run(holds("never", "doc_id = 'x'", "doc_id"))
    assert isinstance(failed, RunFailed)
    assert f"dedup.{unique}: never (2 violations)" in str(failed)
    assert lines[1:] == warned


COLUMNS = "doc_id string, component string"
