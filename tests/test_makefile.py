"""The set-up names what a machine lacks, counts its packages, and leaves those of the tests to the tests."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES_OF_PIP = (
    "for n in $$(seq 120); do echo Collecting package-$$n; done; echo Installing collected packages: a"
)
NEEDED = ("bash", "cat", "cut", "find", "id", "make", "sed", "sort")


def count(lines: str) -> list[str]:
    """Return the command that counts the packages in what a shell prints."""
    return ["make", "-s", f"--eval=count-packages: ; @{{ {lines}; }} | $(COUNTED)", "count-packages"]


def counted_in_a_log(lines: str) -> str:
    return subprocess.run(count(lines), cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_a_log_gets_a_line_every_50_packages() -> None:
    log = counted_in_a_log(LINES_OF_PIP)
    assert re.fullmatch(r"  50 packages\n  100 packages\n  120 packages, installing them, \d+ s\n", log)


@pytest.mark.parametrize("lines", ["true", "echo Installing collected packages: corpus-factory"])
def test_without_new_packages_only_the_seconds_are_printed(lines: str) -> None:
    assert re.fullmatch(r"  \d+ s\n", counted_in_a_log(lines))


def test_a_terminal_gets_one_line_that_counts() -> None:
    reader, terminal = pty.openpty()
    subprocess.run(count(LINES_OF_PIP), cwd=ROOT, stdout=terminal, check=True)
    os.close(terminal)
    shown = ""
    while not shown.endswith("\n"):
        shown += os.read(reader, 4096).decode()
    os.close(reader)
    assert shown.count("\n") == 1
    assert shown.count("\r  ") == 121
    assert shown.rpartition("\r  ")[2].startswith("120 packages, installing them, ")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the programs that the set-up needs; Cargo, the linker and Java do nothing."""
    for name in NEEDED:
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    for name, version in (("cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)"), ("cc", ""), ("java", "")):
        program(tmp_path / name, f"echo '{version}'")
    return tmp_path


def program(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def missing(machine: Path, **environment: str) -> str:
    """Return what `make setup` says of a machine before it installs anything."""
    done = subprocess.run(
        ["make", "-s", f"PYTHON={sys.executable}", f"VENV={machine / 'venv'}", "prerequisites"],
        cwd=ROOT,
        env={"PATH": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
    assert bool(done.returncode) == bool(done.stderr)
    return done.stderr.partition("\nmake")[0]


def test_a_machine_with_all_prerequisites_is_accepted(machine: Path) -> None:
    assert missing(machine) == ""


@pytest.mark.parametrize("script", ["echo 'cargo 1.63.0'", "echo 'no toolchain is installed' >&2; exit 1"])
def test_rust_has_to_run_and_to_be_new_enough(machine: Path, script: str) -> None:
    program(machine / "cargo", script)
    assert missing(machine).startswith("No Rust 1.88 or newer was found")


def test_java_is_the_one_of_java_home_where_that_is_set(machine: Path, tmp_path: Path) -> None:
    assert "No Java was found" in missing(machine, JAVA_HOME=str(tmp_path / "nowhere"))
    (machine / "java").unlink()
    assert "No Java was found" in missing(machine)
    program(tmp_path / "bin" / "java", "true")
    assert missing(machine, JAVA_HOME=str(tmp_path)) == ""


def test_maturin_builds_for_the_environment_of_the_setup(tmp_path: Path) -> None:
    command = ["make", "-s", f"VENV={tmp_path}", "--eval=show: ; @echo $$VIRTUAL_ENV", "show"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path}\n"


def steps(machine: Path, target: str) -> str:
    """Return the commands that `make TARGET` would run in a new clone."""
    return subprocess.run(
        ["make", "-n", f"PYTHON={sys.executable}", f"VENV={machine / 'venv'}", target],
        cwd=ROOT,
        env={"PATH": str(machine)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_each_target_installs_what_it_needs(machine: Path) -> None:
    tools, torch, jars, servers = "-e '.[dev]'", "torch |", "factory.spark --all", '[ -z "yes" ]'
    installed = {
        target: [part for part in (tools, torch, jars, servers) if part in steps(machine, target)]
        for target in ("demo", "lint", "bench", "test", "test-rest")
    }
    assert installed == {
        "demo": [],
        "lint": [tools],
        "bench": [tools],
        "test": [tools, torch],
        "test-rest": [tools, torch, jars, servers],
    }


def test_the_setup_installs_what_the_pipeline_needs() -> None:
    command = [
        "make",
        "-s",
        f"BIN={Path(sys.executable).parent}",
        "--eval=dependencies: ; @$(DEPENDENCIES)",
        "dependencies",
    ]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert lines.splitlines() == [*project["dependencies"], *project["optional-dependencies"]["pipeline"]]
