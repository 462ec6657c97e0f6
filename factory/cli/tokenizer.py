"""`factory tokenizer export`: write a tokenizer of the lake to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from factory.cli import root
from factory.cli.output import open_console, prepare_output
from factory.errors import ConfigurationError
from factory.settings import settings

tokenizer_app = typer.Typer(cls=root.Commands, help="Export a tokenizer of the lake.", no_args_is_help=True)
console = open_console()


@tokenizer_app.callback()
def _group() -> None:
    """Keep the name `export`: typer drops the name of a single command."""


@tokenizer_app.command("export")
def export(
    file: Annotated[Path, typer.Argument(help="The file to write, usually tokenizer.json.")],
    name: Annotated[
        str | None, typer.Option(help="A tokenizer; by default the only one of the lake.")
    ] = None,
    blend: Annotated[
        str | None, typer.Option(help="The id of a blend; exports the tokenizer that made its tokens.")
    ] = None,
) -> None:
    """Write a tokenizer as a Hugging Face `tokenizer.json`, which decodes batches to text."""
    if name is not None and blend is not None:
        raise ConfigurationError("--name and --blend exclude each other. Give one of them.")
    prepare_output(file)
    from factory.atomic_file import write_atomically
    from factory.explain.tokenizers import newest_tokenizer, tokenizer_of_blend
    from factory.lake.tables import Lake

    given = settings()
    found = tokenizer_of_blend(given, blend) if blend else newest_tokenizer(Lake(given), name)
    write_atomically(file, found.content)
    console.print(
        f"{file}: {found.n_tokens:,} tokens of {found.table} at snapshot {found.snapshot_id}, "
        f"tokenizer {found.id}.",
        markup=False,
    )
