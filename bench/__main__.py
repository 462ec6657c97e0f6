"""`python -m bench NAME` (`make bench NAME=...`): run one bench and print what it found.

Progress goes to stderr; the report and its JSON lines to stdout, where every line of JSON begins with `{`.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factory.cli import error_boundary
from factory.errors import ConfigurationError

BENCHES = {
    "ahead": "bench.ahead",
    "client": "bench.client",
    "components": "bench.components",
    "dedup": "bench.dedup",
    "depsort": "bench.depsort",
    "filters": "bench.filters",
    "first_batch": "bench.first_batch",
    "idf": "bench.idf",
    "keep": "bench.keep",
    "layout": "bench.layout",
    "lexers": "bench.lexers",
    "line": "bench.line",
    "minhash": "bench.minhash",
    "mixture": "bench.mixture",
    "packing": "bench.packing",
    "pages": "bench.pages",
    "shuffle": "bench.shuffle",
    "stream": "bench.stream",
}
_WIDTH = 140  # columns of a table where the output is no terminal


def _help() -> str:
    """Every bench with the first sentence of its module, read without importing it."""
    lines = ["Measure, and print the machine, tables and one JSON line a number.", ""]
    for name, module in BENCHES.items():
        source = Path(__file__).with_name(f"{module.split('.')[-1]}.py").read_text()
        said = ast.get_docstring(ast.parse(source)) or ""
        lines += [f"{name}: {' '.join(said.split(chr(10) * 2)[0].split())}", ""]
    return "\n".join(lines)


def run(
    name: Annotated[str, typer.Argument(help="Which bench.", metavar="NAME", show_default=False)],
) -> None:
    """Run the bench called `name`."""
    with error_boundary.sentences():
        if name not in BENCHES:
            raise ConfigurationError(f"There is no bench `{name}`. Those there are: {', '.join(BENCHES)}.")
        from bench.harness import show

        progress = Console(stderr=True, highlight=False)
        report = importlib.import_module(BENCHES[name]).measure(progress)
        terminal = sys.stdout.isatty()
        show(name, report, Console(highlight=False, width=None if terminal else _WIDTH))


def main() -> None:
    """Entry point of `python -m bench`."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=_help())(run)
    error_boundary.run(app)


if __name__ == "__main__":
    main()
