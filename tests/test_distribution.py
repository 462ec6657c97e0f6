"""Nothing tells a reader to install a stranger's package: our own name is right behind each `pip install`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.cli.import_problems import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOLDERS = (
    *("docs", "factory", "spark_udfs", "assets", "jobs", "blender", "bench", "examples"),
    ".github",
    ".ci",
    "docker",
)
NAMES = ("*.md", "*.py", "*.yml", "*.yaml", "Makefile", "Dockerfile", "run", "pyproject.toml")
INSTALL = re.compile(r"\bpip3? install\b([^`\n]*)")
NAME = re.compile(
    r"(?<![/\w.*-])(?P<name>[\w.*-]*factory[\w.*-]*|[\w.*-]+(?=\[))\)?(?:\[(?P<extras>[\w,-]+)\])?"
)


def files() -> Iterator[Path]:
    for folder in (ROOT, *(ROOT / name for name in FOLDERS)):
        for name in NAMES:
            yield from folder.glob(name) if folder == ROOT else folder.rglob(name)


def commands(text: str) -> list[str]:
    """What stands behind each `pip install`, in one line."""
    text = text.replace("{DISTRIBUTION}[{extra}]", f"{DISTRIBUTION}[pipeline]")
    return INSTALL.findall(re.sub(r"\\\n\s*", "", text))


def problems(command: str) -> list[str]:
    """The names in a command that would fetch what is not ours, or extras that we do not have."""
    return [match[0] for match in NAME.finditer(command) if not is_ours(match)]


def is_ours(match: re.Match[str]) -> bool:
    """Whether a name is a wheel by its path, or adds extras to our own name, which is installed by then."""
    if not set(filter(None, (match["extras"] or "").split(","))) <= PROJECT["optional-dependencies"].keys():
        return False
    wheel = re.fullmatch(rf"{DISTRIBUTION.replace('-', '_')}-.*\.whl", match["name"])
    return wheel is not None or (match["name"] == DISTRIBUTION and bool(match["extras"]))


def test_the_name_is_that_of_the_package() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_every_documented_installation_is_of_our_own_package() -> None:
    found = {path: commands(path.read_text(encoding="utf-8")) for path in files()}
    assert {path.name for path in found if found[path]} >= {"README.md", "trainer.md", "ci.md", "Dockerfile"}
    assert {
        path.name: bad for path, lines in found.items() for line in lines if (bad := problems(line))
    } == {}


@pytest.mark.parametrize(
    "command",
    [
        "'model-factory[torch]'",
        "model_factory-*.whl",
        "--quiet model-factory",
        "factory-blender",
        "corpus-factory",
        "'corpus-factory[spark]'",
        "'blender[torch]'",
    ],
)
def test_the_name_of_a_stranger_is_noticed(command: str) -> None:
    assert problems(command)
