"""A trainer's walk: the blocks of its page in their order, and what the page says they print."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.lake.schemas.packing import VOCABULARY_SIZE
from factory.settings import Settings
from tests.blender.lakes import ROOT, packed_rows, serving, write_table
from tests.pages import Command, commands, fenced, is_shown
from tests.ports import free_ports

PAGE, TRAINING = ROOT / "docs" / "trainer.md", ROOT / "docs" / "training.md"
BLEND_OF_PAGE, ADDRESS_OF_PAGE = "bc3494c392c3c3b861317d27601915c7", "127.0.0.1:50051"

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = tmp_path_factory.mktemp("walk") / "lake"
    settings = Settings(home=home, cache=home / "cache")
    for name, n_rows in (("code", 40), ("prose", 300)):
        rows = packed_rows(name, n_rows)
        write_table(settings, f"packed.{name}", rows, snapshot_properties={VOCABULARY_SIZE: "30000"})
    write_table(settings, "raw.notes", packed_rows("notes", 4))
    return settings


@pytest.fixture(scope="module")
def blend(lake: Settings) -> str:
    sources = [Source("packed.code", 6, oversample=True, shuffle="row"), Source("packed.prose", 2)]
    return open_blends(lake).create(sources, seed=7).id


@pytest.fixture(scope="module")
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def server(lake: Settings, port: int) -> Iterator[None]:
    with serving(lake.home, port=port):
        yield


class Translation:
    """The page's words with the blend and the address of the test."""

    def __init__(self, blend: str, port: int) -> None:
        self._words = {
            BLEND_OF_PAGE: blend,
            BLEND_OF_PAGE[:8]: blend[:8],
            ADDRESS_OF_PAGE: f"127.0.0.1:{port}",
        }

    def __call__(self, text: str) -> str:
        for theirs, ours in self._words.items():
            text = text.replace(theirs, ours)
        return text


@pytest.fixture(scope="module")
def translated(blend: str, port: int) -> Translation:
    return Translation(blend, port)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The trainer's folder with the programs of the pages."""
    for page in (PAGE, TRAINING):
        for text in fenced(page, "python"):
            if "def main(" in text:
                (tmp_path / "train.py").write_text(text)
            elif name := re.match(r"# (\w+\.py)\n", text):
                (tmp_path / name[1]).write_text(text)
    return tmp_path


def started(command: str, folder: Path) -> subprocess.Popen[str]:
    """A command of the page, run in the trainer's folder."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",  # else torchrun says that it sets it
        "PYTHONUNBUFFERED": "1",
    }
    return subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def require_shown(command: Command, output: str, status: int) -> None:
    assert status == 0, f"{command.text} printed\n{output}"
    assert is_shown(command.shown, output), f"{command.text} printed\n{output}"


def test_the_commands_print_what_the_page_shows(
    lake: Settings, port: int, folder: Path, translated: Translation
) -> None:
    steps = [Command(translated(step.text), translated(step.shown)) for step in commands(PAGE)]
    programs = [step.text.split()[0] for step in steps]
    assert programs == ["pip", "python", "torchrun", "python", "torchrun", "python"]
    _, *with_server, during_restart = steps  # tests/test_wheel.py installs, in an environment of its own
    with serving(lake.home, port=port):
        for step in with_server:
            process = started(step.text, folder)
            output, _ = process.communicate(timeout=400)
            require_shown(step, output, process.returncode)
    process = started(during_restart.text, folder)
    assert process.stdout is not None
    notice = process.stdout.readline()
    with serving(lake.home, port=port):
        rest, _ = process.communicate(timeout=400)
    require_shown(during_restart, notice + rest, process.returncode)


@pytest.mark.usefixtures("server")
def test_the_session_prints_what_the_page_shows(translated: Translation) -> None:
    text = translated("\n".join(fenced(PAGE, "pycon")))
    examples = doctest.DocTestParser().get_doctest(text, {}, "docs/trainer.md", str(PAGE), 0)
    assert len(examples.examples) > 20
    reports: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(examples, out=reports.append).failed == 0, "".join(reports)
