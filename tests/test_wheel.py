"""The wheel holds every file of the packages, and its `factory` runs the demo far from the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from factory.settings import Settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["maturin"]["python-packages"]
STANDARD = Path(sysconfig.get_path("stdlib"))
pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.long, pytest.mark.timeout(1_200)]

SMALL = """
tokenizers:
  tokenizer: {vocabulary: 500}
blend:
  weights: {checkouts: 1}
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built as `make wheel` builds it, on what the set-up has compiled."""
    folder = tmp_path_factory.mktemp("wheel")
    maturin = [sys.executable, "-m", "maturin", "build", "--interpreter", sys.executable]
    command = [*maturin, "--release", "--quiet", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What pip reads from the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [it for it in archive.namelist() if it.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, and with the packages of this one except our own."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin"


@pytest.fixture
def stranger(installed: Path, tmp_path: Path) -> Stranger:
    """Somebody who installed the wheel, in an empty folder."""
    return Stranger(installed, tmp_path)


class Stranger:
    """Runs programs of the wheel's environment in a folder, where no path leads to the repository."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("FACTORY_", "PYTHON"))
        }
        self._environment = kept | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "160",
            "FACTORY_CACHE": str(Settings().cache),
            "FACTORY_SPARK_DRIVER_MEMORY": "2g",
            "FACTORY_SPARK_MASTER": "local[2]",
            "FACTORY_SPARK_SHUFFLE_PARTITIONS": "1",
        }

    def __call__(self, *command: str, **environment: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {it for it in archive.namelist() if not it.split("/")[0].endswith(".dist-info")}
    assert names - ours == {"factory/_native.abi3.so"}
    assert ours - names == set()
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_pip_learns_what_the_wheel_needs_and_who_may_use_it(wheel: Path, metadata: Message) -> None:
    project = PROJECT["project"]
    assert re.fullmatch(r"model_factory-0\.1\.0-cp311-abi3-manylinux_2_\d+_\w+\.whl", wheel.name)
    assert metadata["License-Expression"] == project["license"]
    assert metadata["Requires-Python"] == project["requires-python"]
    required = [it for it in metadata.get_all("Requires-Dist", []) if "extra ==" not in it]
    assert len(required) == len(project["dependencies"])
    assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text().strip()


def test_the_packages_are_those_of_the_wheel(stranger: Stranger) -> None:
    names = ", ".join(PACKAGES)
    code = f"import factory._native, {names}; print(*[it.__file__ for it in ({names})])"
    places = stranger("python", "-c", code).split()
    assert len(places) == len(PACKAGES)
    assert not any(Path(place).is_relative_to(ROOT) for place in places)
    assert stranger("factory", "--version") == f"factory {PROJECT['project']['version']}\n"


def test_the_demo_runs_on_a_folder_of_a_stranger(stranger: Stranger) -> None:
    for path in (STANDARD / "json").glob("*.py"):
        target = stranger.folder / "data" / "checkouts" / "json" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    assert "repositories" in stranger("factory", "init", "data")
    file = stranger.folder / "data" / "datasets.yaml"
    file.write_text(file.read_text() + SMALL)
    stranger("factory", "check", str(file))
    said = stranger("factory", "demo", "--steps", "20", FACTORY_DATASETS=str(file))
    assert "fetched again, and from a restarted server" in said
