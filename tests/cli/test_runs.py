"""What a run prints: checks that only warn, with their figures, and a killed worker as what it is."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console

from factory.cli.error_boundary import translate
from factory.cli.failures import RunFailed
from factory.cli.runs import RunReport, execute
from factory.errors import LakeLocked
from factory.lake.lock import writing
from factory.orchestration.host.definitions import definitions
from factory.orchestration.table.checks import alarm, holds, layout
from factory.orchestration.table.progress import Progress
from factory.orchestration.table.spark_failure import WORKER_DIED
from factory.settings import Settings
from jobs.watched import Watched
from tests.orchestration.runs import COLUMNS, component_table

CHECKS = [
    alarm("few", "count(1) - 1", "There is one row at most.", "doc_id"),
    alarm("short", "avg(length(doc_id))", "An id is short.", "doc_id", limit=2.5),
    alarm("long_enough", "avg(length(doc_id))", "An id is shorter than ten.", "doc_id", limit=10),
    layout("odd", lambda table, at: ["file [a] is odd", "file b is odd"], "No file is odd."),
]


@pytest.mark.invariant("Warnings of checks are printed with figures and limit, and counted.")
@pytest.mark.spark
def test_checks_that_warn_are_printed_with_their_figures_and_counted(
    spark: SparkSession, lake_settings: Settings, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")

    def run(*more: object) -> tuple[RunReport | RunFailed, list[str]]:
        @component_table(name=unique, checks=[*CHECKS, *more])
        def made(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
            return pyspark.spark_session.createDataFrame([("abc", "1"), ("abcd", "1")], COLUMNS)

        said = StringIO()
        defined, keys = definitions([made], lake_settings), [dg.AssetKey(f"dedup.{unique}")]
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
    assert report.closing() == "1 table made, 0 kept as they were, 3 warnings."

    failed, lines = run(holds("never", "doc_id = 'x'", "doc_id"))
    assert isinstance(failed, RunFailed)
    assert f"dedup.{unique}: never (2 violations)" in str(failed)
    assert lines[1:] == warned


@pytest.mark.parametrize(
    "rows, line",
    [
        ({}, ""),
        (
            {"dedup.web_recall": 62},
            "left out dedup.web_recall, which only people read: made from 20 rows on, and there are 62; "
            "`factory materialize dedup.web_recall` makes it.",
        ),
        (
            {"dedup.web_recall": 1, "dedup.web_sweep": 1},
            "left out 2 tables that only people read: made from 20 rows on, and there is 1; "
            "`factory materialize dedup.web_recall` makes one.",
        ),
        (
            {"dedup.web_recall": 1, "dedup.code_recall": 1_200},
            "left out 2 tables that only people read: made from 20 rows on, and there are 1 to 1,200; "
            "`factory materialize dedup.web_recall` makes one.",
        ),
    ],
)
def test_one_line_names_what_was_left_out(rows: dict[str, int], line: str) -> None:
    ends = {
        table: Progress(table, "left out", n_rows, reason="made from 20 rows on")
        for table, n_rows in rows.items()
    }
    assert RunReport(left_out=ends).left_out_line() == line


def killed_once(counter: Path, times: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for Spark's workers that kills the first `times` of them."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if len(list(counter.iterdir())) < times:
                (counter / str(os.getpid())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return rows


@pytest.mark.invariant("A run reports a killed JVM in one sentence, and a killed Python worker as such.")
@pytest.mark.spark
@pytest.mark.parametrize("times", [1, 2])
def test_a_killed_python_worker_is_said_as_one_and_its_asset_is_tried_again(
    spark: SparkSession,
    lake_settings: Settings,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    times: int,
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")

    @component_table(name=unique)
    def made(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        rows = pyspark.spark_session.createDataFrame([("abc", "1")], COLUMNS).coalesce(1)
        return rows.mapInArrow(killed_once(tmp_path, times), COLUMNS)

    said = StringIO()
    console, keys = Console(file=said), [dg.AssetKey(f"dedup.{unique}")]
    defined = definitions([made], lake_settings)
    if times == 1:
        report = execute(defined, lake_settings, keys, console, reuse=False)
        assert report.rows == {f"dedup.{unique}": 1}
        assert report.failed == []
    else:
        with pytest.raises(RunFailed) as failed:
            execute(defined, lake_settings, keys, console, reuse=False)
        assert str(failed.value).splitlines()[0] == f"dedup.{unique}: {WORKER_DIED}"
        assert str(translate(failed.value)) == str(failed.value)
    last = "made" if times == 1 else "failed"
    printed = [line.split()[0] for line in said.getvalue().splitlines() if line]
    assert printed == ["failed", "again", last]


def test_a_run_that_loses_the_lake_as_it_enters_ends_with_the_code_of_a_locked_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    settings = Settings(home=tmp_path)

    @component_table(name="one")
    def one(context, pyspark) -> DataFrame:  # type: ignore[no-untyped-def]
        raise AssertionError

    with ExitStack() as stack:

        def another_run_enters() -> Iterator[Watched]:
            """No folder to watch; a run asks for one after its first look at the lock."""
            stack.enter_context(writing(settings, "the other run"))
            yield from ()

        defined, keys, watched = (
            definitions([one], settings),
            [dg.AssetKey("dedup.one")],
            another_run_enters(),
        )
        with pytest.raises(LakeLocked, match=r"process \d+, the other run, since .* FACTORY_HOME") as lost:
            execute(defined, settings, keys, Console(file=StringIO()), reuse=False, watched=watched)
    assert len(str(lost.value).splitlines()) == 1
