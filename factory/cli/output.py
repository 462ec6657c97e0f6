"""The output of commands: the consoles on stdout and stderr, and files at paths that the user names.

Nothing is cut and no sentence is broken, so that `grep`, `cut` and people who paste a remedy get all of it:

- a pipe has no width, in spite of COLUMNS: a row is a line, without blanks at its end and without a frame;
- a terminal has one, at which the cells of tables wrap between words, and texts are left to the terminal.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from factory.atomic_file import drop_abandoned
from factory.cli.column_widths import fit_columns
from factory.errors import ConfigurationError

PIPE_COLUMNS = 100_000  # wider than any listing

_PADDING = re.compile(r"[ \t]+$", re.MULTILINE)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class WholeConsole(Console):
    """A console that prints whole texts and cells; without a width it is as wide as its stream."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, texts in one line and tables at least as wide as their longest words."""
        options.setdefault("soft_wrap", all(isinstance(part, str | Text) for part in objects))
        tables = [part for part in objects if isinstance(part, Table)]
        table_width = max((fit_columns(self, table) for table in tables), default=0)
        before = self._width  # None in a terminal, whose window may change its width
        if table_width > self.width:
            self._width = table_width
        try:
            if self.is_terminal:
                super().print(*objects, **options)
                return
            with self.capture() as capture:
                super().print(*objects, **options)
        finally:
            self._width = before
        super().print(Text(_PADDING.sub("", capture.get())), end="", soft_wrap=True)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr, which has the width of a terminal and none in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream is not None and stream.isatty()
    width = None if is_terminal else PIPE_COLUMNS
    return WholeConsole(stderr=stderr, highlight=False, width=width)


def frame(console: Console, title: str, *parts: RenderableType) -> RenderableType:
    """Return parts in a frame with a title; in a pipe, below the title and above an empty line."""
    if console.is_terminal:
        return Panel.fit(Group(*parts), title=title, title_align="left")
    return Group(Text(title), *parts, "")


def prepare_output(file: Path) -> None:
    """Raise ConfigurationError if `file` cannot be written; delete leftovers of killed commands around it."""
    if file.is_dir():
        raise ConfigurationError(f"{file} is a folder. Name a file in it.")
    folder = file.resolve().parent
    if not folder.is_dir():
        raise ConfigurationError(f"The folder {folder} does not exist. Create it, or name another file.")
    drop_abandoned(folder)
