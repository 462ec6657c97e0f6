"""`python -m bench NAME` (`make bench NAME=...`): run one bench and print its report.

Progress goes to stderr; the report and its JSON lines to stdout, where every line of JSON begins with `{`.
"""

from __future__ import annotations

import ast
import importlib
import pickle
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factory.cli import error_boundary
from factory.errors import ConfigurationError

FOLDER = Path(__file__).parent
BENCHES = sorted(path.parent.name for path in FOLDER.glob("*/measure.py"))
_WIDTH = 140  # columns of a table if the output is no terminal


def _help() -> str:
    """List every bench with the first sentence of its module, without importing the module."""
    lines = ["Measure; print the machine, tables and one JSON line per number.", ""]
    for name in BENCHES:
        docstring = ast.get_docstring(ast.parse((FOLDER / name / "measure.py").read_text())) or ""
        lines += [f"{name}: {' '.join(docstring.split(chr(10) * 2)[0].split())}", ""]
    return "\n".join(lines)


def run(
    name: Annotated[
        str,
        typer.Argument(help="Which bench, or part of one: loading.plan.", metavar="NAME", show_default=False),
    ],
    runs: Annotated[int, typer.Option(help="Run it so often; print medians and their spread.", min=1)] = 1,
    report_file: Annotated[Path | None, typer.Option(help="Pickle the report there.", hidden=True)] = None,
) -> None:
    """Run the bench called `name`, or only the part after its dot."""
    with error_boundary.sentences():
        bench, _, part = name.partition(".")
        if bench not in BENCHES:
            raise ConfigurationError(f"Unknown bench `{bench}`. Benches: {', '.join(BENCHES)}.")
        from bench.harness import join_reports, show
        from bench.spread import over_runs, reports_of_runs

        module = importlib.import_module(f"bench.{bench}.measure")
        parts = getattr(module, "PARTS", {})
        if part and part not in parts:
            raise ConfigurationError(
                f"Bench `{bench}` has no part `{part}`. Parts: {', '.join(parts) or 'none'}."
            )
        progress = Console(stderr=True, highlight=False)
        default = [module.measure] if hasattr(module, "measure") else list(parts.values())
        measures = [parts[part]] if part else default
        if runs > 1:
            report = over_runs(reports_of_runs(name, runs, progress))
        else:
            report = join_reports([measure(progress) for measure in measures])
        if report_file is not None:
            report_file.write_bytes(pickle.dumps(report))
            return
        terminal = sys.stdout.isatty()
        show(name, report, Console(highlight=False, width=None if terminal else _WIDTH))


def main() -> None:
    """Entry point of `python -m bench`."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(help=_help())(run)
    error_boundary.run(app)


if __name__ == "__main__":
    main()
