"""The page on durable batches: its commands run as they stand, in order, and print what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.global_batches import BatchReader, StepRange
from blender.records import Source
from tests.blender.global_batches.log.dropped_rules import LIFECYCLE_RULES, RULES
from tests.blender.lakes import CODE, PROSE, make_lake
from tests.page_runs import ROOT, check_page
from tests.pages import commands, fenced

PAGE = ROOT / "docs" / "batches.md"
N_STEPS = 20


@pytest.mark.process
def test_the_page_leads_from_a_blend_to_a_trainer_that_goes_on_after_its_death(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "home", code=24 * N_STEPS, prose=8 * N_STEPS)
    blend = open_blends(lake).create([Source(CODE, 24, shuffle="row"), Source(PROSE, 8)], seed=7).id
    for name, script in zip(("train.py", "read.py", "one.py"), fenced(PAGE, "python"), strict=False):
        (tmp_path / name).write_text(script)
    environment = {
        "FACTORY_HOME": str(lake.home),
        "FACTORY_CACHE": str(lake.cache),
        "BLEND": blend,
        "COLUMNS": "120",
    }
    check_page(tmp_path, commands(PAGE), environment, within_s=200)
    first, second = ((tmp_path / name).read_text().split("\n") for name in ("first.log", "second.log"))
    offsets = [int(line.split()[0]) for line in [*first, *second] if line]
    assert offsets == list(range(N_STEPS))
    check_numpy_reader(tmp_path, [line for line in [*first, *second] if line])
    check_iterator(tmp_path)


def check_numpy_reader(folder: Path, lines: list[str]) -> None:
    """The reader of the page runs where torch is missing, and goes on after its last state."""
    reader = BatchReader(str(folder / "runs/first"))
    first = N_STEPS - 1  # the page has reclaimed the others
    (folder / "reader.json").write_text(json.dumps(reader.state(first)))
    without_torch = "import sys; sys.modules['torch'] = None; exec(open('read.py').read())"
    run = python(folder, without_torch)
    assert run.splitlines() == lines[first:]  # those of the trainer
    assert python(folder, without_torch) == ""


def check_iterator(folder: Path) -> None:
    """The iterator of the page fills the namespace that the page creates for it."""
    rollouts = (
        "import numpy as np\n"
        "def rollouts(start):\n"
        "    for row in range(start, 24, 8):\n"
        "        rewards = np.ones(8, np.float16)\n"
        "        yield {'tokens': np.full((8, 4), row), 'rewards': rewards}, np.int64(row + 8)\n"
    )
    python(folder, rollouts + next(script for script in fenced(PAGE, "python") if "rollouts(" in script))
    steps = list(BatchReader(str(folder / "runs/rollouts")).read(StepRange(), 1))
    assert [int(step.tokens[0, 0]) for step in steps] == [0, 8, 16]
    assert steps[0].origin == {"policy": "step-812"}


def python(folder: Path, program: str) -> str:
    """What a program prints."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_the_page_names_a_world_that_breaks_without_each_rule() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {rule: int(seed) for rule, seed in rows} == {
        name: rule.seed for name, rule in (RULES | LIFECYCLE_RULES).items()
    }
