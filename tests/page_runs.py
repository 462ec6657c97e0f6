"""Runs of the commands of a page of the docs, compared with the outputs that the page shows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.pages import Command, is_shown

ROOT = Path(__file__).parents[1]


def check_page(
    folder: Path, walk: Sequence[Command], environment: Mapping[str, str], *, within_s: int
) -> None:
    """Run commands in one shell in `folder`, and compare their outputs with the page's."""
    script = "\n".join(["set -e", *(f"printf '@@@\\n'; {command.text}" for command in walk)])
    run = subprocess.run(
        ["timeout", "-k", "5", str(within_s), "bash", "-c", script],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    outputs = run.stdout.split("@@@\n")[1:]
    for command, output in zip(walk, outputs, strict=True):
        assert not command.shown or is_shown(command.shown, output), f"{command.text}\n{output}"
