"""The page on operation: its steps to back up, move, restore and upgrade a lake run as they are printed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from factory.errors import LakeMoved
from factory.settings import Settings
from tests.blender.lakes import CODE, make_lake
from tests.lake.relocation.lakes import contents
from tests.pages import commands, is_shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operation.md"
SECTION = "## Back up, move, restore, upgrade"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(600)
def test_the_steps_to_back_up_move_restore_and_upgrade_run_as_printed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0])
    lake = make_lake(tmp_path / ".factory", code=40, prose=20)
    (lake.home / "writing.lock").touch()
    blend = open_blends(lake).create([Source(CODE, weight=1)]).id
    original_contents = contents(lake)
    cache = str(Settings().cache)
    environment = os.environ | {"COLUMNS": "160", "PYTHONPATH": str(ROOT), "FACTORY_CACHE": cache}
    for name in ("FACTORY_HOME", "FACTORY_WAREHOUSE"):
        environment.pop(name, None)
    printed: dict[str, str] = {}
    steps = commands(page)
    assert len(steps) > 10
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.text],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        expected = LakeMoved.exit_code if "was copied or moved" in step.shown else 0
        if step.text != "factory doctor":  # which also judges the machine that runs the test
            assert done.returncode == expected, f"{step.text}: {done.stdout}"
        assert not step.shown or is_shown(step.shown, done.stdout), f"{step.text} printed\n{done.stdout}"
        printed[step.text] = done.stdout
    assert CODE in printed["factory tables"]
    assert "2 tables" in printed["factory doctor"]
    assert blend in printed["factory blend list --lake elsewhere"]
    assert " of python_code" in printed["factory materialize '*' --changed --dry-run"]
    assert contents(lake) == original_contents
    assert contents(lake.model_copy(update={"home": tmp_path / "elsewhere"})) == original_contents
