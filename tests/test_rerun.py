"""A second run of failed tests: what passes then is flaky, what fails again is a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import rerun

ROOT = Path(__file__).parents[1]
FLAKY = """
from pathlib import Path
import pytest

def test_passes_on_the_second_try():
    marker = Path(__file__).with_name("tried")
    tried = marker.exists()
    marker.touch()
    assert tried

def test_passes():
    pass
"""
WRONG = """
def test_fails():
    assert False
"""


def run(folder: Path, workers: int = 0, **files: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of `folder` with a second try."""
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "tests.rerun", f"-n{workers}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.process
def test_a_test_that_passes_on_the_second_try_is_named_and_passes(tmp_path: Path) -> None:
    done = run(tmp_path, workers=1, flaky=FLAKY)
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith(("flaky: ", "failed twice: "))] == [
        "flaky: test_flaky.py::test_passes_on_the_second_try"
    ]


@pytest.mark.process
def test_a_second_failure_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, flaky=FLAKY, wrong=WRONG)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "failed twice: test_wrong.py::test_fails" in done.stdout
    assert "flaky: test_flaky.py::test_passes_on_the_second_try" in done.stdout


@pytest.mark.process
def test_a_test_that_is_skipped_in_the_second_run_has_failed(tmp_path: Path) -> None:
    done = run(
        tmp_path, flaky=FLAKY.replace("assert tried", "if tried:\n        pytest.skip()\n    assert 0")
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "failed twice: test_flaky.py::test_passes_on_the_second_try" in done.stdout


@pytest.mark.process
def test_many_failures_are_not_retried(tmp_path: Path) -> None:
    failing = "\n".join(f"def test_{n}():\n    assert False" for n in range(rerun.MOST_RETRIED + 1))
    done = run(tmp_path, wrong=failing)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "once more" not in done.stdout


@pytest.mark.process
def test_a_file_that_cannot_be_imported_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, broken="import nowhere\n")
    assert done.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
