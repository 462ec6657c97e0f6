"""CPU seconds by group: what is counted, what has grown, and when a run is over its budget."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cpu_budget import (
    OVER_BUDGET,
    SESSION,
    TESTS,
    Budget,
    Comparison,
    Meter,
    group_of,
    read_budgets,
    table,
    write_budgets,
)

ROOT = Path(__file__).parents[1]


def spend(seconds: float) -> None:
    """Use the CPU of this thread for so many seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize(
    "file, group",
    [
        ("test_walk.py", "test_walk"),
        ("lake/test_publish.py", "lake"),
        ("blender/serving/test_server.py", "blender/serving"),
        ("depsort/languages/go/test_symbols.py", "depsort/languages"),
    ],
)
def test_a_group_is_a_folder_two_levels_deep_or_a_file_at_the_root(file: str, group: str) -> None:
    assert group_of(TESTS / file) == group


def test_seconds_belong_to_the_file_that_spent_them() -> None:
    meter = Meter()
    meter.enter(TESTS / "test_walk.py")
    spend(0.3)
    meter.enter(TESTS / "lake" / "test_publish.py")
    with meter.session_fixture():
        spend(0.2)
        with meter.session_fixture():
            spend(0.2)
    meter.enter(None)
    assert meter.seconds["test_walk"] > 0.25
    assert meter.seconds["lake"] < 0.15
    assert meter.seconds[SESSION] > 0.35
    assert len(meter.yardsticks) == 2


def compared(slowdown: float = 1, **seconds: float) -> Comparison:
    budget = Budget(5.0, {"cheap": 10, "dear": 100, "gone": 10})
    return Comparison(Budget(5.0 * slowdown, seconds), budget)


def test_a_group_has_grown_beyond_a_fifth_of_its_budget() -> None:
    assert compared(cheap=14, dear=119).grown == {}
    assert list(compared(cheap=16, dear=121, new=7).grown) == ["dear", "new", "cheap"]


def test_a_run_is_over_beyond_a_quarter_of_the_whole() -> None:
    assert not compared(cheap=20, dear=129).is_over
    assert compared(cheap=20, dear=131).is_over
    assert any("over 25% more CPU" in line for line in table(compared(cheap=20, dear=131)))


def test_a_machine_that_is_slower_for_the_same_work_is_not_blamed() -> None:
    comparison = compared(2, cheap=20, dear=200)
    assert comparison.groups == {"cheap": 10, "dear": 100}
    assert comparison.grown == {}
    assert compared(0.5, cheap=10, dear=100).is_over


def test_budgets_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "budget.toml"
    budgets = {"test": Budget(4.25, {"lake": 10.5, "a/b": 1.0}), "rest": Budget(4.0, {"test_walk": 99.9})}
    assert read_budgets(file) == {}
    write_budgets(budgets, file)
    assert read_budgets(file) == budgets


@pytest.mark.process
@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_over_its_budget_fails_and_says_why(tmp_path: Path, workers: str) -> None:
    budget = tmp_path / "budget.toml"
    write_budgets({"small": Budget(1_000, {"test_spends": 0.001})}, budget)
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from tests import cpu_budget\n"
        f"cpu_budget.TESTS = Path({str(tmp_path)!r})\n"
        f"cpu_budget.read_budgets.__defaults__ = (Path({str(budget)!r}),)\n"
    )
    (tmp_path / "test_spends.py").write_text("def test_spends():\n    sum(range(10**7))\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-p", "tests.cpu_budget", "-n", workers, "-c", str(tmp_path / "pytest.ini")]
    command = [sys.executable, "-m", "pytest", *options, "--cpu-budget", "small", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == OVER_BUDGET, done.stdout
    assert "1 passed" in done.stdout
    assert "need over 25% more CPU" in done.stdout
