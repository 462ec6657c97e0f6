"""The page on clusters: its commands run as they stand, in order, and print what it shows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.pages import commands, fenced, is_shown

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "clusters.md"


@pytest.mark.process
def test_the_page_leads_from_cells_to_a_verdict_that_is_overruled(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    file = next(block for block in fenced(PAGE, "yaml") if "datasets.yaml" in block)
    (tmp_path / "datasets.yaml").write_text(file)
    walk = commands(PAGE)
    script = "\n".join(["set -e", *(f"printf '@@@\\n'; {command.text}" for command in walk)])
    run = subprocess.run(
        ["timeout", "-k", "5", "900", "bash", "-c", script],
        cwd=tmp_path,
        env=os.environ
        | {
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "FACTORY_HOME": str(tmp_path / "lake"),
            "FACTORY_DATASETS": "datasets.yaml",
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
