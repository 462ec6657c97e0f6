"""`factory blend create`: a blend from a file, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from factory.settings import settings

blend_app = typer.Typer(help="Create a blend from a file.", no_args_is_help=True)
_description = Console(stderr=True, highlight=False)  # scripts read the id from stdout


@blend_app.callback()
def _group() -> None:
    """Keep the name `create`: typer drops the name of a single command."""


@blend_app.command("create")
def create(
    file: Annotated[Path, typer.Argument(help="A blend in YAML or JSON: sources, weights, seed, schedule.")],
) -> None:
    """Create the blend of a file and print its id; the same file and tables give the same blend.

    A server of the lake serves it at once. `factory blender plan --file` prices it without creating it.
    """
    from blender.catalog.blends import open_blends
    from factory.cli.blend_file import WrittenBlend
    from factory.cli.serving import show_blend

    written = WrittenBlend.read(file)
    given = settings()
    stored = open_blends(given).create(written.sources, written.seed, written.planned, pad=written.pad)
    show_blend(given, stored.id, _description)
    print(stored.id)
