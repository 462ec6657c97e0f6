"""`factory init`, `factory check` and `factory assets`, and the errors of a datasets file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factory.errors import ConfigurationError
from factory.lake.tables import Lake
from tests.cli.command import factory, process


def test_init_writes_a_file_that_check_accepts_and_writes_over_none(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("One note.")
    written = factory("init", str(tmp_path))
    assert written.exit_code == 0, written.stderr
    checked = factory("check", str(tmp_path / "datasets.yaml"))
    assert checked.exit_code == 0
    assert checked.stdout.splitlines()[1].split() == ["notes", "prose", "files", "1"]
    assert written.stdout.endswith(checked.stdout)
    (tmp_path / "notes" / "a.md").unlink()
    (tmp_path / "b.txt").touch()
    again, empty = factory("init", str(tmp_path)), factory("check", str(tmp_path / "datasets.yaml"))
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert (empty.exit_code, "line 12, datasets[0].paths: No file exists" in empty.stderr) == (2, True)


def test_check_without_a_file_says_which_to_name(lake: Lake) -> None:
    assert factory("check").exit_code == 2
    assert "factory init" in factory("check").stderr


@pytest.mark.process
def test_assets_are_listed_by_dataset(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    file.write_text("datasets: [{name: notes, kind: prose, format: files, paths: .}]")
    done = process(tmp_path, "assets", "--json", FACTORY_DATASETS=str(file))
    found = {(it["kind"], it["name"]): it["assets"] for it in json.loads(done.stdout)}
    assert list(found) == [("dataset", "notes"), ("dedup group", "prose"), ("models", "")]
    assert found["dataset", "notes"][0] == "raw.notes"
    assert "packed.notes" in found["dataset", "notes"]


@pytest.mark.process
@pytest.mark.parametrize("command", [("ui", "--port", "0"), ("demo",), ("materialize", "*")])
def test_a_wrong_file_of_datasets_is_told_with_its_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "my.yaml").write_text("datasets:\n- {name: a, kind: prose, format: files, pahts: .}\n")
    done = process(tmp_path, *command, FACTORY_DATASETS=str(tmp_path / "my.yaml"))
    assert (done.returncode, done.stdout) == (ConfigurationError.exit_code, "")
    assert done.stderr.splitlines() == [
        "my.yaml, line 2, datasets[0].pahts: Unknown field `pahts`. Did you mean `paths`?",
    ]


@pytest.mark.process
def test_weights_that_no_blend_takes_are_told_before_the_line_runs(tmp_path: Path) -> None:
    file = tmp_path / "my.yaml"
    dataset = "{name: notes, kind: prose, format: files, paths: .}"
    file.write_text(f"datasets: [{dataset}]\nblend: {{weights: {{notes: {10**20}}}}}\n")
    ended = process(tmp_path / "lake", "demo", FACTORY_DATASETS=str(file))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.endswith("rows a step. Use at most 1,048,576.\n")
