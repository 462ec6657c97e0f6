"""The page on durable batches: its commands run as they stand, in order, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from blender.catalog.blends import open_blends
from blender.records import Source
from tests.blender.global_batches.protocol.dropped_rules import RULES
from tests.blender.lakes import CODE, PROSE, make_lake
from tests.pages import commands, fenced, is_shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "batches.md"
N_STEPS = 20


@pytest.mark.process
def test_the_page_leads_from_a_blend_to_a_trainer_that_goes_on_after_its_death(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "home", code=24 * N_STEPS, prose=8 * N_STEPS)
    blend = open_blends(lake).create([Source(CODE, 24, shuffle="row"), Source(PROSE, 8)], seed=7).id
    (tmp_path / "train.py").write_text(fenced(PAGE, "python")[0])
    walk = commands(PAGE)
    script = "\n".join(["set -e", *(f"printf '@@@\\n'; {command.text}" for command in walk)])
    run = subprocess.run(
        ["timeout", "-k", "5", "200", "bash", "-c", script],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "FACTORY_HOME": str(lake.home),
            "FACTORY_CACHE": str(lake.cache),
            "BLEND": blend,
            "COLUMNS": "120",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    outputs = run.stdout.split("@@@\n")[1:]
    for command, output in zip(walk, outputs, strict=True):
        assert not command.shown or is_shown(command.shown, output), f"{command.text}\n{output}"
    first, second = ((tmp_path / name).read_text().split("\n") for name in ("first.log", "second.log"))
    offsets = [int(line.split()[0]) for line in [*first, *second] if line]
    assert offsets == list(range(N_STEPS))


def test_the_page_names_a_world_that_breaks_without_each_rule() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    assert {rule: int(seed) for rule, seed in rows} == {name: rule.seed for name, rule in RULES.items()}
