"""Claims on the cores of a machine, made by real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.lake.claims import claim, most_pressing

HOLD = """
import sys, time
from factory.lake.claims import claim
with claim(int(sys.argv[1]), "another run"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder of one test's own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another process, with a claim of priority 3."""
    with subprocess.Popen([sys.executable, "-c", HOLD, "3"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_only_a_higher_priority_is_more_pressing() -> None:
    assert most_pressing(above=-10) is None
    with claim(0, "a run"):
        pressing = most_pressing(above=-10)
        assert pressing is not None
        assert (pressing.priority, pressing.what) == (0, "a run")
        assert most_pressing(above=0) is None
    assert most_pressing(above=-10) is None


def test_the_most_pressing_of_several_claims_is_named(holder: subprocess.Popen[str]) -> None:
    with claim(0, "a run"):
        pressing = most_pressing(above=-1)
    assert pressing is not None
    assert (pressing.what, pressing.pid) == ("another run", holder.pid)


def test_a_killed_process_claims_nothing(holder: subprocess.Popen[str], tmp_path: Path) -> None:
    assert most_pressing(above=0) is not None
    holder.kill()
    holder.wait()
    assert most_pressing(above=0) is None
    assert not list(tmp_path.glob("model-factory-*/claims/*"))
