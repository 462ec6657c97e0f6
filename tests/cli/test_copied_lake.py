"""A copied lake in every command: each is refused with one sentence and exit code, and no file changes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.cli import root
from factory.errors import LakeMoved, MachineError
from factory.settings import settings
from tests.blender.lakes import CODE, make_lake
from tests.cli.command import factory
from tests.cli.every_command import (
    ARGUMENTS,
    CALLS,
    MEND_THE_COPY,
    OPEN_NO_LAKE,
    REPORT_THE_COPY,
    answer,
    names,
)


def state(folder: Path) -> dict[str, tuple[str, int]]:
    """Hash and time of every file below a folder."""
    return {
        str(file.relative_to(folder)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture(scope="module")
def original_lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A lake, which no test changes, and the id of its blend."""
    original = tmp_path_factory.mktemp("made") / "original"
    lake = make_lake(original, code=8)
    return original, open_blends(lake).create([Source(CODE, weight=1)]).id


@pytest.fixture
def copied_lake(
    original_lake: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, Path, str]]:
    """A lake, its copy, which the command works on, and the id of the lake's blend."""
    original, blend = original_lake
    copy = tmp_path / "copy"
    shutil.copytree(original, copy)
    monkeypatch.setenv("FACTORY_HOME", str(copy))
    monkeypatch.setattr(root, "lake_settings", settings)
    settings.cache_clear()
    yield original, copy, blend
    settings.cache_clear()


def test_every_command_is_listed() -> None:
    listed = set(ARGUMENTS) | OPEN_NO_LAKE | REPORT_THE_COPY | MEND_THE_COPY
    assert set(names()) == listed


@pytest.mark.invariant(
    "Every command refuses a copied lake with one sentence and changes no file of it or of its original."
)
@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_command_refuses_a_copied_lake_and_changes_nothing(
    call: list[str], copied_lake: tuple[Path, Path, str], tmp_path: Path
) -> None:
    original, copy, blend = copied_lake
    before = state(original), state(copy)
    code, sentence = answer(call, copy, blend, tmp_path / "file.json")
    assert f"{copy} was copied or moved" in sentence
    assert f"{original}" in sentence
    assert "`factory relocate`" in sentence
    assert (code, sentence.count("\n")) == (LakeMoved.exit_code, 1)
    assert (state(original), state(copy)) == before


def test_doctor_reports_a_copied_lake(copied_lake: tuple[Path, Path, str]) -> None:
    original, copy, _ = copied_lake
    before = state(original), state(copy)
    checked = factory("doctor")
    assert checked.exit_code == MachineError.exit_code
    assert "factory relocate" in " ".join(checked.stdout.split())
    assert (state(original), state(copy)) == before
