"""The command, in this process or in one of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from factory.cli import main
from factory.settings import settings


def factory(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, list(arguments))


def factory_at(home: Path, *arguments: str) -> Result:
    """The command in this process, with the settings of a process whose lake is at `home`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACTORY_HOME", str(home))
        patch.setenv("COLUMNS", "200")
        settings.cache_clear()
        terminate = signal.getsignal(signal.SIGTERM)
        try:
            return factory(*arguments)
        finally:
            settings.cache_clear()
            signal.signal(signal.SIGTERM, terminate)  # some commands let it interrupt them


def process(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "factory.cli.main", *arguments],
        env=os.environ | {"FACTORY_HOME": str(home)} | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
