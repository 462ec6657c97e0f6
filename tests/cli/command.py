"""The command, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from factory.cli import main


def factory(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def process(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "factory.cli.main", *arguments],
        env=os.environ | {"FACTORY_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
