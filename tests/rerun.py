"""Run pytest, and what failed once more in a process of its own.

`python -m tests.rerun OPTIONS` passes the options to pytest. A test that fails and then passes without a
change of code is printed as `flaky: NAME`, and the run passes. A second failure counts, as does a test that
the second run skips or does not find. More than `MOST_RETRIED` failures are not tried again: then the code is
wrong, not the machine.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST_RETRIED = 20
_OUTCOMES = "TEST_OUTCOMES_FILE"


class Outcomes:
    """The tests of a run that failed and those that passed, as a file of lines."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def write(self, name: str, outcome: str) -> None:
        with self.file.open("a") as lines:
            lines.write(f"{outcome} {name!r}\n")

    def names(self, outcome: str) -> list[str]:
        """The names of tests with an outcome, each once, in the order of the run."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        parts = [line.partition(" ") for line in lines]
        return list(dict.fromkeys(str(ast.literal_eval(name)) for kind, _, name in parts if kind == outcome))


class Notes:
    """Notes the outcomes of tests, also of those in workers, in the process that collects their reports."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.when == "call":
            Outcomes(Path(os.environ[_OUTCOMES])).write(report.nodeid, report.outcome)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Notes())


def run(options: Sequence[str], file: Path) -> tuple[int, Outcomes]:
    """Run pytest in a process of its own; return its exit status and the outcomes."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.rerun", *options]
    status = subprocess.run(command, env=os.environ | {_OUTCOMES: str(file)}, check=False).returncode
    return status, Outcomes(file)


def main(options: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        status, first = run(options, Path(folder) / "first")
        failed = first.names("failed")
        if not 0 < len(failed) <= MOST_RETRIED:
            return status
        print(f"\nRunning {len(failed)} failed tests once more ...", flush=True)
        _, second = run([*options, "-n", "0", "--dist", "no", *failed], Path(folder) / "second")
        passed = set(second.names("passed")) - set(second.names("failed"))
    for name in failed:
        print(f"{'flaky' if name in passed else 'failed twice'}: {name}")
    if status == pytest.ExitCode.TESTS_FAILED and passed >= set(failed):
        return 0
    return status  # of the first run: over the budget of CPU seconds, too


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
