"""`factory init` and `factory check`: write a datasets file for a folder, and check one."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from factory.counted import counted
from factory.errors import ConfigurationError
from factory.ingest.listing import first_records
from factory.orchestration.datasets.check import check as checked
from factory.orchestration.datasets.guess import guess
from factory.orchestration.datasets.template import template

FILE = "datasets.yaml"


def init(folder: Path, console: Console) -> None:
    """Write FOLDER/datasets.yaml and print its datasets; raise ConfigurationError if the file exists."""
    path = folder / FILE
    text = template(guess(folder), shlex.quote(str(path)))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{path} exists already. Edit it, or remove it and write another."
        ) from error
    console.print(f"Wrote {path}. Check these guesses:", markup=False)
    check(path, console)


def check(path: Path | None, console: Console) -> None:
    """Print the datasets of a file; raise ConfigurationError with a sentence for each mistake."""
    if path is None:
        raise ConfigurationError(
            "There is no datasets file to check. Name one, such as my-data/datasets.yaml, or set "
            "FACTORY_DATASETS. `factory init FOLDER` writes one."
        )
    found = checked(path)
    table = Table(box=None, header_style="bold")
    for column in ("dataset", "kind", "format", "files", "variants"):
        table.add_column(column, justify="right" if column == "files" else "left")
    for dataset in found.datasets:
        table.add_row(
            dataset.name,
            dataset.kind,
            dataset.format,
            f"{dataset.files:,}" if dataset.made_from is None else f"from {dataset.made_from}",
            escape(", ".join(dataset.variants)),
        )
    console.print(table)
    for dataset in found.datasets:
        if dataset.pages:
            console.print(
                f"`{dataset.name}` takes {counted(dataset.pages, 'web page')} for text, markup and all. "
                "`format: html` reads their main text.",
                markup=False,
                soft_wrap=True,
            )
    for dataset in found.datasets:
        if dataset.limit is not None:
            console.print(
                f"Of `{dataset.name}` only {first_records(dataset.limit)} are read. Without `limit` all are.",
                markup=False,
                soft_wrap=True,
            )
    n_tables = len(found.corpus.assets)  # as runs count them: without tables of rejected records and the like
    console.print(
        f"{path.name} is correct: {counted(len(found.datasets), 'dataset')}, {counted(n_tables, 'table')}. "
        "Materialize them:\n"
        f"FACTORY_DATASETS={shlex.quote(str(path))} factory materialize '*'",
        markup=False,
        soft_wrap=True,
    )
