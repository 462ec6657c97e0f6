"""The `factory` command."""

from __future__ import annotations

import json
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer

from factory.cli import error_boundary, panels, root
from factory.cli.batches import batches_app
from factory.cli.blend import blend_app
from factory.cli.export import export
from factory.cli.import_problems import DISTRIBUTION
from factory.cli.loading import loading_app
from factory.cli.output import Json, open_console
from factory.cli.relocate import relocate as relocate_command
from factory.cli.report import report as report_command
from factory.cli.tokenizer import tokenizer_app
from factory.cli.work import work
from factory.errors import ConfigurationError

app = typer.Typer(
    name="factory",
    cls=root.Root,
    help="Refine raw material into training sequences, follow every document, serve blends.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
trace_app = typer.Typer(
    cls=root.Commands,
    help="Follow a document to the steps that serve it, or a step back to its documents.",
    no_args_is_help=True,
)
console = open_console()


def _print_version(asked: bool) -> None:
    if asked:
        console.print(f"factory {installed_version(DISTRIBUTION)}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    datasets: Annotated[
        Path | None,
        typer.Option("-f", "--datasets", help="The datasets file, in place of FACTORY_DATASETS."),
    ] = None,
    lake: Annotated[
        Path | None, typer.Option("--lake", help="The folder of the lake, in place of FACTORY_HOME.")
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    if not context.meta[root.ASKS_FOR_HELP]:
        root.use_lake(datasets, lake, context.invoked_subcommand or "")


@app.command(rich_help_panel=panels.DATA)
def init(folder: Annotated[Path, typer.Argument(help="The folder of your files.")]) -> None:
    """Write a commented datasets.yaml into a folder, with the formats of its files guessed."""
    if not folder.is_dir():
        raise ConfigurationError(f"`{folder}` is not a folder. Name the folder of your files.")
    from factory.cli.datasets import init as write

    write(folder, console)


@app.command(rich_help_panel=panels.DATA)
def check(
    file: Annotated[
        Path | None,
        typer.Argument(help="A datasets file, or its folder; by default that of -f or FACTORY_DATASETS."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a datasets file and count the files of its datasets; nothing runs."""
    if file is not None and (file / root.DATASETS_FILE).is_file():
        file /= root.DATASETS_FILE
    if file is not None:
        root.require_datasets_file(file, "it")
        root.require_correct_file(file)
    else:
        root.require_declared_file()
    path = file or root.lake_settings().datasets
    if path is None:
        raise ConfigurationError(
            "There is no datasets file to check. Name one, such as my-data/datasets.yaml. "
            "`factory init FOLDER` writes one."
        )
    from factory.cli.datasets import check as checked
    from factory.cli.datasets import check_python

    (check_python if path.suffix == ".py" else checked)(path, console, as_json=as_json)


@app.command(rich_help_panel=panels.DATA)
def materialize(
    selections: Annotated[
        list[str],
        typer.Argument(
            metavar="selection...",
            help="Datasets, wildcards such as 'raw.*' or 'dedup.prose_*', or assets in Dagster's selection "
            "syntax: '*', raw.web, '*packed.web' (with all upstream). `factory assets` lists them.",
        ),
    ],
    changed: Annotated[
        bool, typer.Option("--changed", help="Keep tables whose code and upstream content are unchanged.")
    ] = False,
    partition: Annotated[
        str | None, typer.Option(help="Make only this partition of partitioned tables.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(help="Make only this range of partitions: FIRST...LAST.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print which tables a run would make, and why, without running.")
    ] = False,
    every_table: Annotated[
        bool, typer.Option("--tables", help="With --dry-run: a line for each table.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: every table with its reason as JSON.")
    ] = False,
) -> None:
    """Materialize assets, and print why each table is made again.

    The exit code is 0 if every asset was published, or kept by --changed. A blocking check fails its asset
    (exit code 7). Any other check only warns: its figures are printed, and the last line counts the warnings.
    """
    from factory.orchestration.host.partition_span import span_of

    if partition is not None and partitions is not None:
        raise ConfigurationError("--partition and --partitions exclude each other. Give one of them.")
    span = (partition, partition) if partition is not None else partitions and span_of(partitions)
    if not dry_run and (every_table or as_json):
        raise ConfigurationError("--tables and --json are about a dry run. Add --dry-run.")
    root.require_declared_file()
    from factory.cli import materialize as command

    if not dry_run:
        command.materialize(root.lake_settings(), selections, console, reuse=changed, span=span or None)
        return
    command.dry_run(
        root.lake_settings(),
        selections,
        console,
        reuse=changed,
        span=span or None,
        every_table=every_table,
        as_json=as_json,
    )


@app.command(rich_help_panel=panels.DATA)
def assets(as_json: Json = False) -> None:
    """List the assets, by dataset."""
    root.require_declared_file()
    from factory.cli.assets import show_assets
    from factory.cli.selection import by_dataset
    from jobs.definitions import defs

    show_assets(by_dataset(defs), console, as_json=as_json)


@app.command(rich_help_panel=panels.LOOK)
def tables(as_json: Json = False) -> None:
    """List the published tables of the lake."""
    from factory.cli.tables import show_tables
    from factory.lake.tables import Lake

    show_tables(Lake(root.lake_settings()), console, as_json=as_json)


@app.command(rich_help_panel=panels.LOOK)
def sample(
    table: Annotated[
        str,
        typer.Argument(help="A table, or a state of it: filtered.web@before, raw.web.branch_failed_..."),
    ],
    n: Annotated[int, typer.Option("-n", min=1, help="Number of rows.")] = 20,
    seed: Annotated[int, typer.Option(help="Another seed shows other rows.")] = 0,
    rejected_by: Annotated[
        str | None, typer.Option(help="Only documents this rule rejected (filtered tables).")
    ] = None,
    page: Annotated[
        bool, typer.Option("--page", help="Show each page beside its main text (raw tables of web pages).")
    ] = False,
    cell: Annotated[
        int | None, typer.Option(help="Only documents of this cell (tables of clusters).")
    ] = None,
    cluster: Annotated[
        int | None, typer.Option(help="Only documents of this cluster (tables of clusters).")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Also write the pictures of the rows into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show rows of a table; the same seed shows the same rows."""
    if cell is not None and cluster is not None:
        raise ConfigurationError("A cluster belongs to one cell. Give --cell or --cluster.")
    if page and as_json:
        raise ConfigurationError("--json and --page print different things. Give one of them.")
    from factory.cli.tables import show_pages, show_sample, show_sample_json
    from factory.explain.named_state import named_state
    from factory.explain.tables import sample as chosen
    from factory.lake.packed_tables import NAMESPACE as PACKED
    from factory.lake.tables import Lake

    lake = Lake(root.lake_settings())
    state = named_state(lake, table)
    of_cell = ("cell", cell) if cell is not None else ("cluster", cluster) if cluster is not None else None
    rows = chosen(lake, state, n, seed, rejected_by, of_cell)
    if pictures is not None:
        from factory.counted import counted
        from factory.explain.pictures import write_pictures

        n_pictures = write_pictures(rows, pictures)
        typer.echo(f"Wrote {counted(n_pictures, 'picture')} into {pictures}.", err=True)
    if as_json:
        show_sample_json(rows, console)
    elif page:
        show_pages(lake, state.table, rows, console)
    elif state.table.namespace == PACKED and rows and "segments" in rows[0]:
        from factory.cli.packed_rows import show_packed_rows

        show_packed_rows(lake, state, rows, console)
    else:
        show_sample(rows, state.table, console)


@app.command(rich_help_panel=panels.LOOK)
def diff(
    left: Annotated[
        str, typer.Argument(help="A table, or a state of it: filtered.web@before, filtered.web@<snapshot>.")
    ],
    right: Annotated[
        str | None, typer.Argument(help="The table or state to compare it with; by default LEFT@before.")
    ] = None,
    n: Annotated[int, typer.Option("-n", min=0, help="Number of examples of each cause.")] = 3,
    as_json: Json = False,
) -> None:
    """Show which documents enter and leave between two tables, by rule, with examples."""
    from factory.cli.diff import show
    from factory.explain.diff import diff as compared
    from factory.lake.tables import Lake

    show(compared(Lake(root.lake_settings()), left, right, n), console, as_json=as_json)


@trace_app.command("document")
def trace_document(
    document: Annotated[str, typer.Argument(help="A doc_id, a key, or a path: flate2/src/lib.rs.")],
    as_json: Json = False,
) -> None:
    """Follow a document from its source to the steps that serve it, or to what removed it."""
    from factory.cli.trace import show_documents
    from factory.explain.batches import add_stored_steps
    from factory.explain.steps import trace_text

    traces, lost = trace_text(root.lake_settings(), document)
    unread = add_stored_steps(root.lake_settings(), traces)
    show_documents(traces, [*lost, *unread], console, as_json=as_json)


@trace_app.command("batch")
def trace_batch(
    blend: Annotated[
        str, typer.Argument(help="The id of a blend, or the address of a namespace of durable batches.")
    ],
    offset: Annotated[int, typer.Argument(min=0, help="The step.")],
    n: Annotated[int, typer.Option("-n", min=1, help="Number of rows to show.")] = 20,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave the texts out.")] = False,
    as_json: Json = False,
) -> None:
    """Follow every document of a step back to its source, with the beginning of its text in each row."""
    from factory.cli.packed_rows import texts_of_step
    from factory.cli.trace import show_batch, show_step
    from factory.explain.batches import trace_batch as trace_stored
    from factory.explain.steps import trace_step

    if "/" in blend or Path(blend).is_dir():
        batch = trace_stored(root.lake_settings(), blend, offset)
        texts = {} if no_text or as_json else texts_of_step(root.lake_settings(), batch.step, n)
        show_batch(batch, console, as_json=as_json, n=n, texts=texts)
        return
    step = trace_step(root.lake_settings(), blend, offset)
    texts = {} if no_text or as_json else texts_of_step(root.lake_settings(), step, n)
    show_step(step, console, as_json=as_json, n=n, texts=texts)


@app.command(rich_help_panel=panels.DATA)
def demo(
    steps: Annotated[int, typer.Option(min=1, help="Number of steps to fetch.")] = 1_000,
) -> None:
    """Run the whole pipeline on the datasets, serve a blend of them and follow two documents."""
    root.require_declared_file()
    from factory.cli.demo import run

    run(root.lake_settings(), steps, console)


@app.command(
    rich_help_panel=panels.SERVE,
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Serve the lake's blends over gRPC; `factory serve --help` lists the options."""
    from factory.cli.serving import serve_blends

    serve_blends(root.lake_settings(), context.args)


app.command("work", rich_help_panel=panels.DATA)(work)
app.command("export", rich_help_panel=panels.LOOK)(export)
app.command("report", rich_help_panel=panels.LOOK)(report_command)
app.command("relocate", rich_help_panel=panels.OPERATE)(relocate_command)
app.add_typer(trace_app, name="trace", rich_help_panel=panels.LOOK)
app.add_typer(tokenizer_app, name="tokenizer", rich_help_panel=panels.LOOK)
app.add_typer(blend_app, name="blend", rich_help_panel=panels.SERVE)
app.add_typer(loading_app, name="loading", rich_help_panel=panels.SERVE)
app.add_typer(batches_app, name="batches", rich_help_panel=panels.SERVE)


@app.command(rich_help_panel=panels.OPERATE)
def ui(port: Annotated[int, typer.Option(help="Port of the web page.")] = 3000) -> None:
    """Open the Dagster UI on the lake."""
    from factory.cli.serving import require_free_port

    require_free_port(port)
    root.require_declared_file()
    from factory.cli.ui import open_ui

    open_ui(root.lake_settings(), port, console)


@app.command(rich_help_panel=panels.OPERATE)
def doctor(as_json: Json = False) -> None:
    """Check the machine, and name a remedy for each missing part."""
    from factory.cli.doctor import report

    report(root.lake_settings(), console, as_json=as_json)


@app.command(rich_help_panel=panels.OPERATE)
def bootstrap() -> None:
    """Prepare the configured engines: create the bucket, the catalog and Dagster's tables."""
    from factory.cli.bootstrap import bootstrap as make_ready

    make_ready(root.lake_settings(), console)


@app.command(rich_help_panel=panels.OPERATE)
def clean(as_json: Json = False) -> None:
    """Drop what failed and killed runs left behind: their branches and Spark's scratch."""
    from factory.cli.clean import clean as clean_lake
    from factory.lake.tables import Lake

    dropped = clean_lake(root.lake_settings())
    if as_json:
        console.print_json(json.dumps(dropped))
    for table, branches in {} if as_json else dropped.items():
        console.print(f"Dropped of {table}: {', '.join(branches)}.")
    if not dropped and not as_json:
        console.print("Nothing to drop.")
    error_boundary.raise_together(Lake(root.lake_settings()).readable()[1])


def main() -> None:
    """Entry point of the command."""
    error_boundary.run(app)


if __name__ == "__main__":
    main()
