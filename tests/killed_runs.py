"""Runs of the command line that tests kill, and the tables that they leave."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from factory.lake.tables import Lake
from factory.settings import Settings

ROOT = Path(__file__).parents[1]
FACTORY = [sys.executable, "-c", "from factory.cli.entry import main; main()"]


def command(
    folder: Path, lake: str, selection: str = "*", environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a run of a selection in a process group of its own; it prints to `<lake>.log`."""
    variables = {
        "FACTORY_HOME": str(folder / lake),
        "FACTORY_CACHE": str(Settings().cache),
        "PYTHONPATH": str(ROOT),
    }
    with (folder / f"{lake}.log").open("ab") as log:
        return subprocess.Popen(
            [*FACTORY, "materialize", selection, "--changed", "-f", "datasets.yaml"],
            cwd=folder,
            env=os.environ | variables | dict(environment or {}),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill_run(
    folder: Path, seconds: float, selection: str = "*", environment: Mapping[str, str] | None = None
) -> None:
    """Start a run in lake `killed`, and kill it and its children some time after its first table."""
    log = folder / "killed.log"
    length = log.stat().st_size if log.exists() else 0
    run = command(folder, "killed", selection, environment)
    while run.poll() is None and log.stat().st_size == length:
        time.sleep(0.1)
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, 9)
        run.wait()


def contents(settings: Settings) -> dict[str, str]:
    """Return the fingerprint of each table of a lake."""
    lake = Lake(settings)
    return {
        str(table): lake.published(table).lineage.content
        for table in lake.names()
        if lake.table(table).current_snapshot() is not None
    }
