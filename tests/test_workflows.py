"""The workflows for a public CI call commands that exist, with pinned actions and allowed versions."""

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
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])


def steps(path: Path) -> Iterator[dict[str, Any]]:
    """Every step of every job of a workflow."""
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        yield from job["steps"]


def commands(path: Path) -> Iterator[list[str]]:
    """The words of every command that a workflow runs."""
    for step in steps(path):
        for line in step.get("run", "").splitlines():
            for command in line.split("&&"):
                yield shlex.split(command)


def test_one_workflow_runs_the_tests_the_demo_and_a_selection() -> None:
    found = [words for path in WORKFLOWS for words in commands(path)]
    assert ["make", "test"] in found
    assert any(words[:2] == ["make", "demo"] for words in found)
    assert any(words[1:2] == ["materialize"] and "--changed" in words for words in found)


@every_workflow
def test_every_target_and_command_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(path):
        tool = words[0].rpartition("/")[2]
        assert tool in ("make", "factory", "rustup"), words
        if tool == "make":
            given = [word.partition("=")[0] for word in words[1:] if "=" in word]
            assert {word for word in words[1:] if "=" not in word} <= targets, words
            assert set(given) <= variables, words
        if tool == "factory":
            command = get_command(app).commands[words[1]]  # type: ignore[attr-defined]
            command.make_parser(click.Context(command)).parse_args(words[2:])


@every_workflow
def test_every_action_is_pinned_by_version(path: Path) -> None:
    for step in steps(path):
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", step["uses"]), step["uses"]


@every_workflow
def test_every_setting_and_version_is_valid(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = tuple(map(int, re.findall(r"\d+", project["requires-python"])))
    for step in steps(path):
        for name in step.get("env", {}):
            assert name.removeprefix("FACTORY_").lower() in Settings.model_fields, name
        options = step.get("with", {})
        if "python-version" in options:
            assert tuple(map(int, options["python-version"].split("."))) >= least
        if "java-version" in options:
            assert int(options["java-version"]) >= 17
