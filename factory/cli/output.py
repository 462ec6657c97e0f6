"""The output of commands: the console on stdout, and files at paths that the user names.

A pipe has no width: whatever COLUMNS says, lines are as long as they need to be and no cell is cut, so that
`grep`, `cut` and people who paste a remedy get all of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factory.atomic_file import drop_abandoned
from factory.errors import ConfigurationError

PIPE_COLUMNS = 100_000  # wider than any listing

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def open_console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr, which wraps at the width of a terminal and never in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream is not None and stream.isatty()
    width = None if is_terminal else PIPE_COLUMNS
    return Console(stderr=stderr, highlight=False, width=width)


def prepare_output(file: Path) -> None:
    """Raise ConfigurationError if `file` cannot be written; delete leftovers of killed commands beside it."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder. Name a file in it.")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise ConfigurationError(f"The folder {folder} does not exist. Create it, or name another file.")
    drop_abandoned(folder)
