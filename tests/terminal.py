"""The command in a terminal of a known width, whatever the environment says."""

from __future__ import annotations

from unittest.mock import patch

from typer.testing import CliRunner, Result

from factory.cli import blend, main
from factory.cli.output import WholeConsole


def in_columns(width: int, *arguments: str) -> Result:
    """Run the command in this process, on a new console: a console reads COLUMNS only when it is made."""
    console = WholeConsole(width=width, height=25, force_terminal=False, highlight=False)
    with patch.object(main, "console", console), patch.object(blend, "console", console):
        return CliRunner().invoke(main.app, list(arguments))
