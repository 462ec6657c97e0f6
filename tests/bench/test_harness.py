"""What a bench prints: rows that parse, aims that are judged, no time for a wrong answer."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from bench.__main__ import BENCHES
from bench.harness import Report, Row, WrongAnswer, at_least, at_most, show, table
from bench.loading.measure import PARTS

ROOT = Path(__file__).parents[2]


def printed(report: Report, width: int) -> list[str]:
    out = StringIO()
    show("test", report, Console(file=out, width=width, highlight=False))
    return out.getvalue().splitlines()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_packing_needs_a_lake_with_something_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_HOME", str(tmp_path))
    done = command("packing")
    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        f"The lake in {tmp_path} has no packed table. Run the pipeline: make demo."
    ]
    assert done.stdout == ""


def test_a_row_without_an_aim_says_nothing_of_one() -> None:
    assert json.loads(Row("pipeline.speed", 1.5, "MB/s").json()) == {
        "name": "pipeline.speed",
        "value": 1.5,
        "unit": "MB/s",
    }


def test_a_row_with_an_aim_says_whether_it_is_met() -> None:
    assert json.loads(at_least("fill", 0.98, "share", 0.99).json()) == {
        "name": "fill",
        "value": 0.98,
        "unit": "share",
        "aim": ">= 0.99",
        "met": False,
    }


@pytest.mark.parametrize(
    "row, met",
    [
        (at_least("r", 0.99, "share", 0.99), True),
        (at_least("r", 0.9899999, "share", 0.99), False),
        (at_most("r", 0.01, "share", 0.01), True),
        (at_most("r", 0.0100001, "share", 0.01), False),
        (at_most("r", 0, "share", 0), True),
    ],
)
def test_an_aim_is_met_at_its_limit_and_not_beyond(row: Row, met: bool) -> None:
    assert row.met is met


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_row_is_a_finite_number(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Row("speed", value, "MB/s").json()


def test_each_row_is_one_line_of_json_however_narrow_the_terminal() -> None:
    rows = [Row("a.name.of.some.length [with] :smile: markup", 1, "unit"), at_most("b", 2.5, "s", 2)]
    costs = table("Costs", "stage | s")
    costs.add_row("ingest", "1.0")
    lines = printed(Report(["noisy"], "none", tables=[costs], rows=rows), width=30)
    found = [line for line in lines if line.startswith("{")]
    assert found == [row.json() for row in rows]
    assert [json.loads(line)["value"] for line in found] == [1, 2.5]


def test_caveats_and_checks_stand_before_the_numbers() -> None:
    costs = table("Costs", "stage | s")
    costs.add_row("ingest", "12.5")
    report = Report(["one run only"], "two documents", tables=[costs], rows=[Row("ingest", 12.5, "s")])
    report.check("nothing was lost", True)
    text = "\n".join(printed(report, width=200))
    order = ["one run only", "processor", "Python 3", "two documents", "nothing was lost", "Costs", '{"name"']
    places = [text.index(it) for it in order]
    assert places == sorted(places)


def test_a_wrong_answer_ends_the_bench() -> None:
    report = Report([], "")
    with pytest.raises(WrongAnswer, match="every token is there"):
        report.check("every token is there", False)
    assert report.answers == []


def test_runs_are_processes_with_a_joint_report() -> None:
    done = command("loading.laws", "--runs", "2")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("run ")] == [
        "run 1 of 2 of loading.laws",
        "run 2 of 2 of loading.laws",
    ]
    assert "Medians of 2 runs" in done.stdout
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert rows
    assert all(row["least"] <= row["value"] <= row["most"] for row in rows)


def test_a_run_that_fails_ends_the_others_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_HOME", str(tmp_path))
    done = command("packing", "--runs", "3")
    assert done.returncode == 5
    assert done.stderr.splitlines() == [
        "run 1 of 3 of packing",
        f"The lake in {tmp_path} has no packed table. Run the pipeline: make demo.",
        "Run 1 of 3 of `packing` ended with exit code 5; its reason is above.",
    ]
    assert done.stdout == ""


def test_an_unknown_bench_is_answered_by_the_list_of_benches() -> None:
    done = command("nothing")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"Unknown bench `nothing`. Benches: {', '.join(BENCHES)}."]
    assert done.stdout == ""


def test_an_unknown_part_is_answered_by_the_list_of_parts() -> None:
    done = command("loading.nothing")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"Bench `loading` has no part `nothing`. Parts: {', '.join(PARTS)}."]


def test_help_lists_every_bench() -> None:
    done = command("--help")
    assert done.returncode == 0
    for name in BENCHES:
        assert f" {name}: " in done.stdout
