"""The workflows, ours and that of docs/ci.md, call commands that exist, with pinned actions and versions."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from typer.main import get_command

from factory.cli.main import app
from factory.settings import Settings

ROOT = Path(__file__).parents[1]
OURS = {path.name: path.read_text() for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
(TO_COPY,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
WORKFLOWS = OURS | {"docs/ci.md": TO_COPY}
TOOLS = {"make", "factory", "rustup", "python3", "pip", "apt-get", "docker"}
every_workflow = pytest.mark.parametrize("text", WORKFLOWS.values(), ids=WORKFLOWS)


def steps(text: str) -> Iterator[dict[str, Any]]:
    """Every step of every job of a workflow."""
    for job in yaml.safe_load(text)["jobs"].values():
        yield from job["steps"]


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command that a workflow runs."""
    for step in steps(text):
        for line in step.get("run", "").splitlines():
            for command in line.split("&&"):
                yield shlex.split(command)


def test_one_workflow_runs_all_tests_the_demo_and_a_selection() -> None:
    found = [words for text in OURS.values() for words in commands(text)]
    for target in ("test", "test-rest"):
        assert ["make", target, "RERUN=1"] in found
    assert ["make", "lint"] in found
    assert any(words[:2] == ["make", "demo"] for words in found)
    assert any(words[1:2] == ["materialize"] and "--changed" in words for words in found)


def test_the_wheel_is_installed_and_run_without_a_compiler() -> None:
    jobs = yaml.safe_load(OURS["ci.yml"])["jobs"]
    built = [step["with"] for step in jobs["wheel"]["steps"] if "upload-artifact" in step.get("uses", "")]
    taken = [step["with"] for step in jobs["install"]["steps"] if "download-artifact" in step.get("uses", "")]
    assert built == taken == [{"name": "wheel", "path": "dist/wheel"}]
    assert jobs["install"]["needs"] == "wheel"
    runs = [step.get("run", "") for step in jobs["install"]["steps"]]
    assert "factory demo" in runs
    assert not any("rust" in run or "make" in run for run in runs)
    (image,) = re.findall(r"^FROM (python:.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert jobs["install"]["container"] == image


@every_workflow
def test_every_target_and_command_exists(text: str) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(text):
        tool = words[0].rpartition("/")[2]
        assert tool in TOOLS, words
        if tool == "make":
            given = [word.partition("=")[0] for word in words[1:] if "=" in word]
            assert {word for word in words[1:] if "=" not in word} <= targets, words
            assert set(given) <= variables, words
        if tool == "factory":
            command = get_command(app).commands[words[1]]  # type: ignore[attr-defined]
            command.make_parser(click.Context(command)).parse_args(words[2:])


@every_workflow
def test_every_action_is_pinned_by_version(text: str) -> None:
    for step in steps(text):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", step["uses"]), step["uses"]


@every_workflow
def test_every_setting_and_version_is_valid(text: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    for step in [yaml.safe_load(text), *steps(text)]:
        for name in step.get("env", {}):
            assert name.removeprefix("FACTORY_").lower() in Settings.model_fields, name
        options = step.get("with", {})
        if "python-version" in options:
            assert tuple(map(int, options["python-version"].split("."))) >= least
        if "java-version" in options:
            assert int(options["java-version"]) >= 17
