"""`factory blender plan` prices the blends there are and those that are being considered, and makes none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from blender.blends import open_blends
from blender.config import blend_source
from factory.cli import main
from factory.settings import Settings
from tests.blender.lakes import make_lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A lake with `packed.code` (40 rows) and `packed.prose` (300 rows), that the command works on."""
    made = make_lake(tmp_path / "lake", code=40, prose=300)
    monkeypatch.setattr(main, "_settings", lambda: made)
    return made


def planned(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(main.app, ["blender", "plan", *arguments])


def test_a_considered_blend_is_priced_and_not_made(lake: Settings) -> None:
    found = planned("--table", "packed.code=2", "--table", "packed.prose=6", "--ranks", "4", "--json")
    choices = json.loads(found.stdout)
    assert [it["shuffle"] for it in choices if it["source"] == "packed.prose"] == ["none", "page", "row"]
    (none, _, row) = [it for it in choices if it["source"] == "packed.prose"]
    assert (none["chosen"], row["chosen"]) == (True, False)
    assert none["score"] > 3 * row["score"]
    assert row["bytes_of_ranks"] >= none["bytes_of_ranks"] > none["bytes_a_step"] > 0
    assert open_blends(lake).list() == []


def test_a_blend_on_record_is_priced_with_its_own_shuffle_marked(lake: Settings) -> None:
    source = blend_source(
        table="packed.prose", weight=8, shuffle="page_window", page_rows=4, window_pages=16, oversample=True
    )
    made = open_blends(lake).create([source], seed=5)
    shown = planned(made.id, "--ranks", "2").stdout
    (marked,) = [line for line in shown.splitlines() if "* page_window" in line]
    assert marked.split()[2:4] == ["4/16", "64"]
    assert "bytes that 2 ranks read" in " ".join(shown.split())


@pytest.mark.parametrize(
    "arguments, words",
    [
        ((), "Give the id of a blend, or sources"),
        (("0" * 32, "--table", "packed.code=1"), "not both"),
        (("--table", "packed.code"), "`packed.code` says no rows a step"),
        (("--table", "packed.code=8", "--ranks", "3"), "cannot be shared evenly by 3 ranks"),
        (("--table", "packed.code=0"), "weights sum to 0"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(
    lake: Settings, arguments: tuple[str, ...], words: str
) -> None:
    result = planned(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
