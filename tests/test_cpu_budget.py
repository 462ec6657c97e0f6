"""CPU seconds by group: what is counted, what has grown, and when a run is over its budget."""

from __future__ import annotations

import os
import subprocess
import sys
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
    yardstick_ms,
)
from tests.cpu_clock import CpuClock

ROOT = Path(__file__).parents[1]


class Clock(CpuClock):
    """A clock that shows what a test sets."""

    seconds = 0.0

    def read(self) -> float:
        return self.seconds


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
    clock = Clock()
    meter = Meter(clock)
    meter.enter(TESTS / "test_walk.py")
    clock.seconds += 3
    meter.enter(TESTS / "lake" / "test_publish.py")
    clock.seconds += 1
    with meter.session_fixture():
        clock.seconds += 20
        with meter.session_fixture():
            clock.seconds += 30
    clock.seconds += 1
    meter.enter(None)
    assert meter.seconds == {"test_walk": 3, "lake": 2, SESSION: 50}
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
    comparison = compared(1.25, cheap=12.5, dear=125)
    assert comparison.groups == {"cheap": 10, "dear": 100}
    assert comparison.grown == {}
    assert compared(0.8, cheap=10, dear=140).is_over


def test_another_machine_is_not_judged() -> None:
    assert not compared(2, cheap=20, dear=900).is_over
    assert "That is another machine" in list(table(compared(0.5, cheap=20, dear=900)))[-1]


def test_both_runs_of_the_tests_have_a_budget() -> None:
    assert read_budgets().keys() == {"test", "rest"}


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
    write_budgets({"small": Budget(yardstick_ms(), {"test_spends": 0.001})}, budget)
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from tests import cpu_budget\n"
        f"cpu_budget.TESTS = Path({str(tmp_path)!r})\n"
        f"cpu_budget.read_budgets.__defaults__ = (Path({str(budget)!r}),)\n"
        "cpu_budget.COMPARABLE = 0, 1_000\n"
    )
    (tmp_path / "test_spends.py").write_text("def test_spends():\n    sum(range(10**7))\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\n")
    options = ["-p", "tests.cpu_budget", "-n", workers, "--cpu-budget", "small"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == OVER_BUDGET, done.stdout
    assert "1 passed" in done.stdout
    assert "need over 25% more CPU" in done.stdout
