"""`factory export`: the documents of a dataset in one file, with the decision on each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from factory.cli.output import open_console, prepare_output
from factory.settings import settings

console = open_console()


def export(
    dataset: Annotated[str, typer.Argument(help="A dataset or variant, such as web or web__strict.")],
    file: Annotated[
        Path, typer.Argument(help="The file to write: .parquet, .jsonl, .jsonl.gz or .jsonl.zst.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Also the removed documents, each with the reason.")
    ] = False,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave the texts out.")] = False,
) -> None:
    """Write the kept documents of a dataset to a file, with texts, keys and decisions.

    The file appears when it is complete. Memory stays bounded at any size of the dataset; no JVM starts.
    """
    from factory.explain.dataset_version import DatasetVersion
    from factory.explain.export import Export
    from factory.explain.export_file import require_format
    from factory.lake.tables import Lake

    require_format(file)
    prepare_output(file)
    lake = Lake(settings())
    plan = Export(lake, DatasetVersion.newest(lake, dataset), removed=everything, text=not no_text)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True), transient=True) as bar:
        task = bar.add_task(file.name, total=plan.n_rows)
        found = plan.write(file, lambda rows: bar.advance(task, rows))
    removed = found.reasons.total() - found.kept
    documents = f"{found.kept:,} kept{f' and {removed:,} removed' if everything else ''} documents"
    by_reason = ", ".join(f"{reason} {n:,}" for reason, n in found.reasons.most_common())
    console.print(
        f"{file}: {documents} of {dataset} ({by_reason or 'none'}), {found.n_bytes / 1e6:,.1f} MB, "
        f"by {found.version.kept.table} at snapshot {found.version.kept.snapshot_id}.",
        markup=False,
    )
