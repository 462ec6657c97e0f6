"""A report has the tables of a lake or a run, each with the figures, checks and chart of its run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner, Result

from factory.cli import main
from factory.cli import report as command
from factory.errors import DamagedFile, NotFound, TableNotFound
from factory.lake import names
from factory.lake.names import TableName
from factory.lake.schemas.dedup import DECISIONS, DEDUPLICATED
from factory.lake.schemas.ingest import REJECTED
from factory.lake.tables import Lake
from factory.orchestration.host.history import LEFT_OUT
from factory.orchestration.host.instance import open_instance
from factory.orchestration.keys import key_of
from factory.orchestration.table.drawing import bars
from factory.settings import Settings
from tests.explain.lakes import document, documents, pack, publish, verdicts

WEB = names.raw("web")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lake = Lake(Settings(home=tmp_path / "lake"))
    monkeypatch.setattr(command, "settings", lambda: lake.settings)
    monkeypatch.setenv("DAGSTER_HOME", "")
    return lake


def record_run(lake: Lake, warned: float = 0.8, left_out: str = "") -> str:
    """Run an asset that records what an asset of `raw.web` does, without its table; return the run's id.

    It records `left_out`, too, as the reason for which an asset left out a table that only people read.
    """
    loses_little = dg.AssetCheckSpec("web_loses_little", asset=key_of(WEB))

    @dg.asset(key=key_of(WEB), check_specs=[loses_little])
    def web(context) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:  # type: ignore[no-untyped-def]
        if left_out:
            recall = key_of(names.dedup("prose", "recall"))
            context.log_event(dg.AssetObservation(recall, metadata={LEFT_OUT: left_out}))
        yield dg.MaterializeResult(
            metadata={
                "dagster/row_count": 6,
                "bytes": 21,
                "seconds": 1.5,
                "made because": "word_count 50 -> 100",
                "rejected": 4,
                "snapshot": "17",
                "chart": dg.MetadataValue.md(bars(["1", "2"], [3, 3], "documents by <bytes>").image),
            }
        )
        yield dg.AssetCheckResult(
            passed=warned <= 0.5,
            check_name="web_loses_little",
            severity=dg.AssetCheckSeverity.WARN,
            description="At most 50% are removed.",
            metadata={"measured": warned, "limit": 0.5},
        )

    with open_instance(lake.settings) as instance:
        return dg.materialize([web], instance=instance).run_id


def report(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, ["report", *arguments])


def section(page: str, table: str) -> str:
    """The part of a page below the heading of a table."""
    return page.split(f'<h3 id="{table}">')[1].split("<h3")[0]


def test_newest_tables_come_with_the_chart_of_their_run(lake: Lake, tmp_path: Path) -> None:
    run = record_run(lake)
    publish(lake, WEB, DEDUPLICATED, [document(letter) for letter in "abcdef"], run_id=run)
    verdicts(lake, "web", {"f": {"word_count": 1.0}})
    said = report(str(tmp_path / "page.html"))
    assert "2 tables, 1 chart," in said.stdout
    page = (tmp_path / "page.html").read_text()
    of_web = section(page, "raw.web")
    assert "rejected 4" in of_web
    assert "Made because word_count 50 -&gt; 100." in of_web
    assert 'alt="documents by &lt;bytes&gt;" src="data:image/svg+xml;base64,' in of_web
    assert "web_loses_little: At most 50% are removed." in of_web
    assert "limit 0.5, measured 0.8" in of_web
    assert str(lake.published(WEB).snapshot_id) in of_web  # the lake's, whatever the record says
    assert "the record of its run is gone" in section(page, "filtered.web")


def test_a_page_needs_no_other_file(lake: Lake, tmp_path: Path) -> None:
    publish(lake, WEB, DEDUPLICATED, [document("a")], run_id=record_run(lake))
    report(str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert set(re.findall(r'(?:src|href)="([a-z]+:|#)', page)) == {"data:", "#"}
    assert "<script" not in page
    assert "<link" not in page


def test_rows_in_and_out_of_a_whole_dataset_are_summed_up(lake: Lake, tmp_path: Path) -> None:
    documents(lake, "web", "abcdef")
    publish(lake, names.rejected("web"), REJECTED, [])
    verdicts(lake, "web", {"f": {"word_count": 1.0}})
    publish(lake, names.dedup("prose", "decisions"), DECISIONS, [])
    publish(lake, names.deduplicated("web"), DEDUPLICATED, [document(letter) for letter in "abc"])
    report(str(tmp_path / "page.html"))
    rows = re.sub(r"<[^>]+>|\s+", " ", (tmp_path / "page.html").read_text().split("<h2>Tables")[0])
    assert re.search(r"filtered\.web +6 +5 +83\.3 %", rows)
    assert re.search(r"deduplicated\.web +5 +3 +60\.0 %", rows)


def test_a_run_is_found_by_the_beginning_of_its_id(lake: Lake, tmp_path: Path) -> None:
    record_run(lake)
    run = record_run(lake, warned=0.25)
    result = report(str(tmp_path / "page.html"), "--run", run[:8])
    assert "1 table, 1 chart," in result.stdout
    page = (tmp_path / "page.html").read_text()
    assert f"Run <code>{run}</code>: success" in page
    assert "did not pass" not in page
    unknown = report("--run", "nowhere")
    assert (unknown.exit_code, run in unknown.stderr) == (NotFound.exit_code, True)


def test_a_run_lists_what_it_left_out(lake: Lake, tmp_path: Path) -> None:
    run = record_run(lake, left_out="2 texts, made from 3 texts on")
    report(str(tmp_path / "page.html"), "--run", run)
    page = (tmp_path / "page.html").read_text()
    assert "Left out: dedup.prose_recall, which only people read (2 texts, made from 3 texts on)." in page


def test_a_table_says_what_has_changed_since_it_was_made(lake: Lake, tmp_path: Path) -> None:
    def earlier() -> str:
        report(str(tmp_path / "page.html"))
        return section((tmp_path / "page.html").read_text(), "deduplicated.web")

    rows = [document(letter) for letter in "abc"]
    first = publish(lake, WEB, DEDUPLICATED, rows)
    publish(lake, names.deduplicated("web"), DEDUPLICATED, rows, WEB)
    assert "Of an earlier state" not in earlier()
    publish(lake, WEB, DEDUPLICATED, rows)  # again, with the same content
    assert "Of an earlier state" not in earlier()
    publish(lake, WEB, DEDUPLICATED, rows[:1])
    assert (
        f"Of an earlier state: made from raw.web at snapshot {first}, which has changed since." in earlier()
    )


def test_an_empty_lake_has_nothing_to_report(lake: Lake, tmp_path: Path) -> None:
    refused = report(str(tmp_path / "page.html"))
    assert (refused.exit_code, (tmp_path / "page.html").exists()) == (TableNotFound.exit_code, False)


@pytest.mark.parametrize("damaged", [names.rejected("web"), names.filtered("web"), names.packed("web")])
def test_a_damaged_table_is_named_on_the_page(lake: Lake, tmp_path: Path, damaged: TableName) -> None:
    documents(lake, "web", "abc")
    publish(lake, names.rejected("web"), REJECTED, [])
    verdicts(lake, "web", {}, "abc")
    publish(lake, names.deduplicated("web"), DEDUPLICATED, [document("a")])
    pack(lake, "web", "a")
    folder = lake.settings.files.warehouse.joinpath(*damaged.identifier, "metadata")
    max(folder.glob("*.metadata.json")).write_text("{}")
    result = report(str(tmp_path / "page.html"))
    assert result.exit_code == DamagedFile.exit_code
    page = (tmp_path / "page.html").read_text()
    assert f"Table {damaged} is damaged" in page
    assert '<td><a href="#deduplicated.web">' in page.split("<h2>Tables")[0]
    assert "None" not in page
