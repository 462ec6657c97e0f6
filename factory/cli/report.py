"""`factory report`: figures, checks and charts of a run or of the newest tables, in one HTML file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from factory.cli.output import open_console, prepare_output
from factory.errors import TableNotFound
from factory.settings import settings

console = open_console()


def report(
    file: Annotated[Path, typer.Argument(help="The HTML file to write.")] = Path("report.html"),
    run: Annotated[
        str | None, typer.Option(help="A run, by the beginning of its id; by default the newest tables.")
    ] = None,
) -> None:
    """Write one HTML file with the figures, checks and charts of the lake's newest tables, or of a run.

    The file needs no other file and no network. Its charts come from the records of runs, so no JVM starts.
    """
    prepare_output(file)
    from factory.atomic_file import write_atomically
    from factory.cli.error_boundary import raise_together
    from factory.counted import counted
    from factory.lake.tables import Lake
    from factory.orchestration.host.run_ids import require_run

    given = settings()
    lake = Lake(given)
    if run is None and not lake.names_in_file():
        raise _without_tables()
    if run is not None:
        require_run(given, run)
    from factory.explain.report import report_of_lake, report_of_run
    from factory.explain.report_page import page
    from factory.orchestration.host.instance import open_instance, reading_runs

    with open_instance(given) as instance, reading_runs(given):
        found = report_of_run(lake, instance, run) if run else report_of_lake(lake, instance)
    if not found.tables and not found.damaged:
        raise _without_tables()
    content = page(found, datetime.now(UTC))
    write_atomically(file, content)
    charts = sum(table.picture is not None for table in found.tables)
    console.print(
        f"{file}: {counted(len(found.tables), 'table')}, {counted(charts, 'chart')}, "
        f"{len(content.encode()) / 1e6:,.1f} MB.",
        markup=False,
    )
    raise_together(found.damaged)


def _without_tables() -> TableNotFound:
    return TableNotFound(
        "The lake has no tables to report. Run the pipeline: factory demo, or factory materialize '*'."
    )
