"""Every listing whole in a pipe, whatever COLUMNS says, and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from blender.catalog.blends import open_blends
from blender.records import Schedule, Source
from factory.cli import main, root
from tests.blender.lakes import CODE, PROSE, make_lake
from tests.cli.command import factory, process
from tests.cli.every_command import names

DATASETS = """\
datasets:
  - {name: notes, kind: prose, format: files, paths: notes, include: "**/*.md"}
"""
ELSEWHERE = {"batches probe", "batches show", "batches status", "trace document"}  # their own tests
LIST_NOTHING = {  # lines of progress, an id on stdout, a file, a server
    *("init", "work", "demo", "blend create", "blend update", "report", "export", "tokenizer export"),
    *("serve", "loading serve", "ui", "bootstrap", "relocate"),
    *("batches create", "batches produce", "batches end", "batches finish"),
    *("batches reclaim", "batches close"),
}
LISTINGS = {
    "assets": [],
    "blend list": [],
    "blend plan": ["<blend>"],
    "blend show": ["<blend>"],
    "blend retire": ["<second>"],
    "check": ["<file>"],
    "clean": [],
    "diff": [CODE, PROSE],
    "doctor": [],
    "loading index": ["<blend>"],
    "loading plan": ["<blend>"],
    "materialize": ["packed.python_code", "--dry-run"],
    "sample": [CODE],
    "tables": [],
    "trace batch": ["<blend>", "0"],
}


def with_json(group: TyperGroup, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        path = f"{above} {name}".strip()
        if isinstance(command, TyperGroup):
            yield from with_json(command, path)
        elif any("--json" in parameter.opts for parameter in command.params):
            yield path


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A lake with two blends, one of a schedule, that the command works on; what stands for its names."""
    lake = make_lake(tmp_path / "lake", code=40, prose=300)
    monkeypatch.setattr(root, "lake_settings", lambda: lake)
    sources = [Source(CODE, oversample=True), Source(PROSE, oversample=True)]
    schedule = Schedule(8, ((0, {CODE: 3, PROSE: 1}), (2_000, {CODE: 1, PROSE: 3})), "cosine")
    blend = open_blends(lake).create(sources, schedule=schedule)
    second = open_blends(lake).create([Source(CODE, weight=1)])
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("A note.")
    file = tmp_path / "datasets.yaml"
    file.write_text(DATASETS)
    return {"<blend>": blend.id, "<second>": second.id, "<file>": str(file), "<lake>": str(lake.home)}


def test_every_command_that_lists_takes_json() -> None:
    group = get_command(main.app)
    assert isinstance(group, TyperGroup)
    assert set(with_json(group)) == LISTINGS.keys() | ELSEWHERE
    assert set(names()) == LISTINGS.keys() | ELSEWHERE | LIST_NOTHING


@pytest.mark.parametrize("name", LISTINGS)
def test_a_listing_prints_one_document_of_json(words: dict[str, str], name: str) -> None:
    arguments = [words.get(argument, argument) for argument in LISTINGS[name]]
    printed = factory(*name.split(), *arguments, "--json")
    assert printed.exit_code in (0, 3), printed.stderr  # doctor judges the machine too
    assert json.loads(printed.stdout) is not None


@pytest.mark.parametrize("name", LISTINGS)
def test_nothing_is_cut_in_a_pipe_of_60_columns(
    words: dict[str, str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    arguments = [words.get(argument, argument) for argument in LISTINGS[name]]
    printed = factory(*name.split(), *arguments)
    assert printed.exit_code in (0, 3), printed.stderr  # doctor judges the machine too
    assert printed.stdout
    assert not re.search(r"…|\x1b|[ \t]$", printed.stdout, re.MULTILINE)
    for argument in arguments:  # whole wherever it is named, in one line
        assert argument in printed.stdout or argument[:8] not in printed.stdout


@pytest.mark.process
def test_a_row_is_a_line_of_a_pipe(words: dict[str, str]) -> None:
    listed = process(Path(words["<lake>"]), "blend", "list", COLUMNS="60").stdout.splitlines()
    (row,) = (line for line in listed if words["<blend>"] in line)
    assert row.endswith(f"{CODE} 75%, {PROSE} 25% at step 0 -> {CODE} 25%, {PROSE} 75% at step 2,000")


@pytest.mark.parametrize("command", ["show", "plan"])
def test_a_schedule_is_shown_as_one(words: dict[str, str], command: str) -> None:
    lines = factory("blend", command, words["<blend>"]).stdout.splitlines()
    at = lines.index("8 rows a step, in half waves between:")
    assert [line.split() for line in lines[at + 1 : at + 4]] == [
        ["at", "step", CODE, PROSE],
        ["0", "75.0%", "25.0%"],
        ["2,000", "25.0%", "75.0%"],
    ]


def test_a_blend_is_updated_from_a_step_on(words: dict[str, str], tmp_path: Path) -> None:
    updated = factory("blend", "update", words["<second>"], "--from", "5", "--weight", f"{CODE}=2")
    assert updated.exit_code == 0, updated.stderr
    assert f"Before step 5 it equals blend {words['<second>']}." in updated.stderr
    shown = json.loads(factory("blend", "show", updated.stdout.strip(), "--json").stdout)
    assert shown["updates"] == [{"blend": words["<second>"], "before_step": 5}]
    change = tmp_path / "change.yaml"
    change.write_text(f"weights: {{{CODE}: 2}}\n")
    again = factory("blend", "update", words["<second>"], "--from", "5", "--file", str(change))
    assert again.stdout == updated.stdout
    refused = factory("blend", "update", words["<second>"], "--from", "5")
    assert (refused.exit_code, "--weight packed.code=6" in refused.stderr) == (2, True)


def test_a_retired_blend_leaves_the_list(words: dict[str, str]) -> None:
    retired = factory("blend", "retire", words["<second>"])
    assert f"Blend {words['<second>']} is retired: its snapshots of {CODE} may expire." in retired.stdout
    assert words["<second>"] not in factory("blend", "list").stdout
    assert words["<second>"] in factory("blend", "list", "--retired").stdout


@pytest.mark.parametrize("old, new", [("blends", "factory blend list"), ("blender", "factory blend plan")])
def test_an_old_name_leads_to_the_new_one(old: str, new: str) -> None:
    refused = factory(old)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"There is no command `{old}`: `{new}`")
