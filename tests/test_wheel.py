"""The wheel holds every file of the packages. Far from the repository it trains without extras, and with the
pipeline's runs the demo.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from factory.errors import MachineError
from factory.settings import Settings
from tests.blender.lakes import make_lake
from tests.pages import commands

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["maturin"]["python-packages"]
STANDARD = Path(sysconfig.get_path("stdlib"))
pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.long, pytest.mark.timeout(1_200)]

# Today 44 packages and 413 MB; PySpark alone has 489.
MOST_PACKAGES, MOST_MEGABYTES = 48, 440
TRAIN = """
import sys
from blender import BlenderClient, Source, open_blend

client = BlenderClient(sys.argv[1])
blend = client.create([Source("packed.code", 2, shuffle="row"), Source("packed.prose", 1)], seed=7).id
served = client.open(blend)
for steps in zip(open_blend(blend).fetch(0, 4), served.fetch(0, 4), strict=True):
    read, fetched = (step.tokens.tolist() for step in steps)
    assert read == fetched
print(blend)
"""
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
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
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


@pytest.fixture(scope="module")
def trainers_programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it requires without extras, fetched by pip."""
    folder = tmp_path_factory.mktemp("trainer")
    venv.create(folder, symlinks=True, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), str(wheel)], check=True)
    subprocess.run([*pip[:3], "uninstall", "--quiet", "--yes", "pip", "setuptools"], check=True)
    return folder / "bin"


@pytest.fixture
def trainer(trainers_programs: Path, tmp_path: Path) -> Stranger:
    """Somebody who installed the wheel without extras."""
    return Stranger(trainers_programs, tmp_path)


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
        done = self.run(*command, **environment)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    @contextmanager
    def serving(self, **environment: str) -> Iterator[str]:
        """A Blender of these programs on any free port; yields its address."""
        file = self.folder / "address"
        command = ["factory", "serve", "--port", "0", "--address-file", str(file)]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(
            command, cwd=self.folder, env=self._environment | environment, **quiet
        ) as server:
            try:
                while not file.exists():
                    assert server.poll() is None
                    time.sleep(0.05)
                yield file.read_text().strip()
            finally:
                server.terminate()


def test_the_wheel_holds_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert names - ours == {"factory/_native.abi3.so"}
    assert ours - names == set()
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


def test_pip_learns_what_the_wheel_needs_and_who_may_use_it(wheel: Path, metadata: Message) -> None:
    project = PROJECT["project"]
    version = re.escape(project["version"])
    assert re.fullmatch(rf"corpus_factory-{version}-cp311-abi3-manylinux_2_\d+_\w+\.whl", wheel.name)
    assert metadata["License-Expression"] == project["license"]
    assert metadata["Requires-Python"] == project["requires-python"]
    required = [
        requirement for requirement in metadata.get_all("Requires-Dist", []) if "extra ==" not in requirement
    ]
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


@pytest.mark.invariant(
    "The package without extras trains, serves, traces and looks at tables in 44 packages; a command that"
    " needs the extra `pipeline` names it."
)
def test_a_trainers_installation_is_small(trainers_programs: Path) -> None:
    (packages,) = trainers_programs.parent.glob("lib/python*/site-packages")
    names = sorted(path.name.partition("-")[0] for path in packages.glob("*.dist-info"))
    n_bytes = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    print(f"{len(names)} packages, {n_bytes / 1e6:.0f} MB")
    assert not {"pyspark", "dagster", "pandas", "torch", "tokenizers"} & set(names)
    assert len(names) <= MOST_PACKAGES, names
    assert n_bytes <= MOST_MEGABYTES * 1e6


@pytest.mark.invariant(
    "The package without extras trains, serves, traces and looks at tables in 44 packages; a command that"
    " needs the extra `pipeline` names it."
)
def test_a_trainer_reads_a_blend_and_looks_at_its_lake(trainer: Stranger) -> None:
    home = str(make_lake(trainer.folder / "lake", code=40, prose=40).home)
    with trainer.serving(FACTORY_HOME=home) as address:
        blend = trainer("python", "-c", TRAIN, address, FACTORY_HOME=home).strip()
    (trainer.folder / "blend.yaml").write_text("sources: [{table: packed.code, weight: 2}]")
    for words in (
        "tables",
        "blend list",
        f"blend show {blend}",
        "blend create blend.yaml",
        f"blend plan {blend}",
        "sample packed.code",
        f"trace batch {blend} 3",
        "batches create runs/first --mesh dp=2 --lanes 4",
        "batches status runs/first",
    ):
        trainer("factory", *words.split(), FACTORY_HOME=home)


@pytest.mark.invariant(
    "The package without extras trains, serves, traces and looks at tables in 44 packages; a command that"
    " needs the extra `pipeline` names it."
)
@pytest.mark.parametrize(
    "words", ["materialize packed.code", "assets", "check data.yaml", "demo", "ui", "report", "clean"]
)
def test_a_command_that_makes_tables_names_the_pipelines_extra(trainer: Stranger, words: str) -> None:
    home = make_lake(trainer.folder / "lake", code=2).home  # `report` of an empty lake needs no extra
    (trainer.folder / "data.yaml").write_text("datasets: {notes: {format: files, path: .}}")
    done = trainer.run("factory", *words.split(), FACTORY_HOME=str(home))
    sentence = (
        r"This command needs `\w+`, which is not installed. "
        r"Install it: pip install 'corpus-factory\[pipeline\]'\.\n"
    )
    assert re.fullmatch(sentence, done.stdout)
    assert done.returncode == MachineError.exit_code


def test_the_trainers_page_installs_this_wheel(wheel: Path, tmp_path: Path) -> None:
    """All that the extra needs is there already, so pip is kept off the network."""
    (install, *_) = commands(ROOT / "docs" / "trainer.md")
    environment = tmp_path / "environment"
    venv.create(environment, symlinks=True, with_pip=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    shutil.copy(wheel, tmp_path)
    reader = Stranger(environment / "bin", tmp_path)
    reader("pip", "uninstall", "--quiet", "--yes", "setuptools")  # older than the one that torch needs
    reader("bash", "-c", install.text, PIP_NO_INDEX="1")
    assert reader("python", "-c", "import blender; print(blender.__file__)").startswith(str(packages))
