"""`factory relocate`: make a copied or moved lake a lake of its own at its new place."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from factory.cli.output import open_console
from factory.counted import counted
from factory.settings import settings

console = open_console()


def relocate(
    take: Annotated[
        bool,
        typer.Option("--take", help="Take a warehouse that belongs to another home, which is shut out then."),
    ] = False,
) -> None:
    """Make the copied or moved lake in FACTORY_HOME a lake of its own at this place.

    It rewrites the paths in the lake's metadata, reads every table and compares its rows with the fingerprint
    on record. The lake that was copied is neither read nor written. A relocation that was interrupted is
    completed by running it again.
    """
    from blender.catalog.moved_progress import move_progress
    from factory.lake.relocation.relocate import relocate as moved

    lake_settings = settings()
    began = time.monotonic()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("reading the catalog", total=None)
        relocated = moved(
            lake_settings,
            take=take,
            settle=lambda pairs: move_progress(lake_settings, pairs),
            observe=lambda step, done, steps: bar.update(task, description=step, completed=done, total=steps),
        )
    seconds = time.monotonic() - began
    for caveat in relocated.caveats:
        console.print(caveat, markup=False)
    if relocated.tables:
        files, tables = counted(relocated.files, "metadata file"), counted(len(relocated.tables), "table")
        console.print(
            f"Rewrote {files} of {tables} and read {counted(relocated.rows, 'row')} "
            f"({relocated.read_bytes / 1e6:,.1f} MB), whose fingerprints are those on record, "
            f"in {seconds:,.1f} s."
        )
    if relocated.taken_from:
        taken = f"The lake in {relocated.taken_from} may no longer use {lake_settings.warehouse_uri}."
        console.print(taken, markup=False)
    console.print(f"The lake in {lake_settings.home} is at its place.", markup=False)
