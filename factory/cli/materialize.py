"""`factory materialize`: make a selection of assets, or forecast the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import dagster as dg
from rich.console import Console

from factory.cli.forecast_lines import dataset_lines, forecast_json, table_lines
from factory.cli.runs import RunReport, execute
from factory.cli.selection import select, spelled_tables
from factory.cli.summary import show_stages
from factory.cli.undeclared import undeclared_line, undeclared_tables
from factory.counted import counted
from factory.explain.summary import stage_rows
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.partition_span import Span
from factory.orchestration.host.partitions import batches
from factory.orchestration.keys import key_of
from factory.orchestration.table.forecast import forecast
from factory.settings import Settings
from jobs.definitions import CORPUS, WATCHED, defs
from jobs.watched import notice


def materialize(
    settings: Settings, selections: Sequence[str], console: Console, *, reuse: bool, span: Span | None
) -> None:
    """Make the assets of all `selections`; print why each is made again, then the rows of their stages.

    Raises the errors of `execute`.
    """
    keys = _selected(settings, selections)
    report = execute(
        defs,
        settings,
        keys,
        console,
        reuse=reuse,
        span=span,
        watched=WATCHED,
        named_tables=spelled_tables(" ".join(selections), keys),
    )
    show_rows(settings, report, console)
    _show_undeclared(settings, console)
    console.print(report.closing())


def show_rows(settings: Settings, report: RunReport, console: Console) -> None:
    """Print the rows in and out of the tables of a run that belong to a dataset."""
    made = {TableName.parse(table).name for table in report.rows}
    datasets = [dataset for dataset in CORPUS.datasets if dataset in made]
    stages = [stage for stage in stage_rows(Lake(settings), datasets) if stage.table in report.rows]
    if stages:
        show_stages(stages, console)


def dry_run(
    settings: Settings,
    selections: Sequence[str],
    console: Console,
    *,
    reuse: bool,
    span: Span | None,
    every_table: bool,
    as_json: bool,
) -> None:
    """Print the forecast of a run of all `selections`; write no table.

    The lines are by dataset and reason, or one for `every_table`.
    """
    keys = _selected(settings, selections)
    instance = open_instance(settings)
    gone_folders = notice(WATCHED, instance)
    assets = list(defs.resolve_asset_graph().assets_defs)
    runs = batches(assets, keys, instance, span)
    named_tables = spelled_tables(" ".join(selections), keys)
    forecasts = forecast(Lake(settings), assets, runs, instance, reuse=reuse, named_tables=named_tables)
    if as_json:
        console.print_json(forecast_json(forecasts))
        return
    for gone in gone_folders:
        console.print(f"{gone} has no folder any more. Its rows stay.", markup=False)
    for line in table_lines(forecasts) if every_table else dataset_lines(forecasts):
        console.print(line, soft_wrap=True)
    _show_undeclared(settings, console)
    n = Counter(table.verdict for table in forecasts)
    n_on_demand = sum(table.verdict == "maybe" and table.on_demand for table in forecasts)
    more = f", {n['maybe'] - n_on_demand:,} more if their input changes" if n["maybe"] > n_on_demand else ""
    more += f", {n_on_demand:,} more if there are enough rows" if n_on_demand else ""
    left_out = f", and leaves out {n['leave']:,}" if n["leave"] else ""
    keeps = f"{',' if left_out else ', and'} keeps {n['keep']:,}"
    console.print(
        f"Nothing was run. A run makes {counted(n['make'], 'table')}{more}{keeps}{left_out}.",
        soft_wrap=True,
    )


def _show_undeclared(settings: Settings, console: Console) -> None:
    tables = undeclared_tables(settings, sorted(Lake(settings).names()), defs)
    if line := undeclared_line(settings, tables):
        console.print(line, markup=False, soft_wrap=True)


def _selected(settings: Settings, selections: Sequence[str]) -> list[dg.AssetKey]:
    published = {key_of(name) for name in Lake(settings).names_in_file()}
    return sorted({key for selection in selections for key in select(defs, selection, published)})
