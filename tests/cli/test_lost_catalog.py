"""A lake without its catalog in every command: each is refused with one sentence, and no file changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import root
from factory.errors import DamagedFile, MachineError
from factory.settings import Settings, settings
from tests.blender.lakes import CODE, make_lake
from tests.cli.command import factory
from tests.cli.every_command import CALLS, answer


@pytest.fixture
def lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Settings, str]]:
    """A lake whose catalog was moved away, which the command works on, and the id of its blend."""
    lake = make_lake(tmp_path / "lake", code=8)
    blend = open_blends(lake).create([Source(CODE, weight=1)]).id
    lake.files.catalog_database.rename(tmp_path / "catalog.db")
    monkeypatch.setenv("FACTORY_HOME", str(lake.home))
    monkeypatch.setattr(root, "lake_settings", settings)
    settings.cache_clear()
    yield lake, blend
    settings.cache_clear()


def contents(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.invariant(
    "Every command refuses a lake that holds tables and has lost its catalog, and changes no file of it "
    "(`factory/lake/lost_catalog.py`)."
)
@pytest.mark.parametrize("call", [*CALLS, ["relocate"]], ids=" ".join)
def test_a_command_refuses_a_lake_without_its_catalog_and_changes_nothing(
    call: list[str], lost: tuple[Settings, str], tmp_path: Path
) -> None:
    lake, blend = lost
    before = contents(lake.home)
    code, sentence = answer(call, lake.home, blend, tmp_path / "file.json")
    assert f"The lake in {lake.home} has lost its catalog" in sentence
    assert "Restore catalog.db from a backup" in sentence
    assert (code, sentence.count("\n")) == (DamagedFile.exit_code, 1)
    assert contents(lake.home) == before


def test_doctor_reports_a_lake_without_its_catalog(lost: tuple[Settings, str]) -> None:
    lake, _ = lost
    checked = factory("doctor")
    assert checked.exit_code == MachineError.exit_code
    assert "has lost its catalog" in " ".join(checked.stdout.split())
    assert not lake.files.catalog_database.exists()


def test_naming_the_lake_tells_the_loss_too(lost: tuple[Settings, str]) -> None:
    lake, _ = lost
    named = factory("--lake", str(lake.home), "tables")
    assert (named.exit_code, "has lost its catalog" in named.stderr) == (DamagedFile.exit_code, True)
