"""A failed import names the folder that hides one of our packages, or the extra that is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from factory.cli import import_problems
from factory.cli.import_problems import import_problem, require_own_packages
from factory.errors import ConfigurationError, MachineError

ROOT = Path(__file__).parents[2]


@pytest.mark.process
@pytest.mark.parametrize(
    "command, name",
    [
        ("assets", "jobs/__init__.py"),
        ("assets", "assets/__init__.py"),
        ("assets", "jobs.py"),
        ("ui", "jobs/__init__.py"),  # whose definitions another process loads
        ("tables", "blender/__init__.py"),  # which the command imports before it runs
    ],
)
def test_a_folder_that_hides_a_package_is_named(tmp_path: Path, command: str, name: str) -> None:
    hiding = tmp_path / name
    hiding.parent.mkdir(exist_ok=True)
    hiding.touch()
    paths = f"{tmp_path}{os.pathsep}{ROOT}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from factory.cli.entry import main; main()", command],
        env=os.environ | {"PYTHONPATH": paths, "FACTORY_HOME": str(tmp_path / "lake")},
        capture_output=True,
        text=True,
        check=False,
    )
    place = tmp_path / name.partition("/")[0]
    assert done.stderr == (
        f"{place} comes before the factory's package `{place.stem}` on Python's path and hides it. "
        f"Rename it, or take {tmp_path} out of PYTHONPATH.\n"
    )
    assert done.returncode == ConfigurationError.exit_code


def test_a_folder_without_a_module_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    require_own_packages()


def test_the_working_directory_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_problems, "_PACKAGES", ("hides_ours",))
    (tmp_path / "hides_ours.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="out of PYTHONPATH, or run the command in another folder"):
        require_own_packages()


def test_a_missing_package_of_an_extra_is_named_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the pipeline's packages: tests/test_wheel.py."""
    problem = import_problem(ModuleNotFoundError("No module named 'torch'", name="torch.utils"))
    assert isinstance(problem, MachineError)
    assert str(problem).endswith("Install it: pip install 'corpus-factory[torch]'.")


def test_a_package_of_nobody_stays_unexpected() -> None:
    assert requires("corpus-factory")
    assert import_problem(ModuleNotFoundError("No module named 'x'", name="x")) is None
    assert import_problem(ImportError("cannot import name 'x'")) is None
