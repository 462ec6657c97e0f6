"""`factory materialize`: make a selection of assets, or forecast the run."""

from __future__ import annotations

from collections import Counter

import dagster as dg
from rich.console import Console
from rich.markup import escape

from factory.cli.runs import RunReport, execute
from factory.cli.selection import select
from factory.cli.summary import show_stages
from factory.counted import counted
from factory.explain.summary import stage_rows
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.orchestration.asset.forecast import Expectation, Forecast, forecast
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.partitions import Span, batches
from factory.orchestration.keys import key_of
from factory.settings import Settings
from jobs.definitions import CORPUS, WATCHED, defs
from jobs.sensors import notice

_SHOWN: dict[Expectation, str] = {
    "make": "[green]make[/]  {table:<40} because {reason}",
    "maybe": "[yellow]maybe[/] {table:<40} if {reason}",
    "keep": "[dim]keep[/]  {table:<40} {reason}",
}


def materialize(
    settings: Settings, selection: str, console: Console, *, reuse: bool, span: Span | None
) -> None:
    """Make the assets of `selection`; print why each is made again, then the rows of its stages in and out.

    Raises the errors of `execute`.
    """
    report = execute(
        defs, settings, _selected(settings, selection), console, reuse=reuse, span=span, watched=WATCHED
    )
    show_rows(settings, report, console)
    console.print(report.closing())


def show_rows(settings: Settings, report: RunReport, console: Console) -> None:
    """Print the rows in and out of the tables of a run that belong to a dataset."""
    made = {TableName.parse(table).name for table in report.rows}
    datasets = [dataset for dataset in CORPUS.datasets if dataset in made]
    stages = [stage for stage in stage_rows(Lake(settings), datasets) if stage.table in report.rows]
    if stages:
        show_stages(stages, console)


def dry_run(settings: Settings, selection: str, console: Console, *, reuse: bool, span: Span | None) -> None:
    """Print the forecast of a run of `selection`, with a reason for each asset; write no table."""
    instance = open_instance(settings)
    for gone in notice(WATCHED, instance):
        console.print(f"{gone} has no folder any more. Its rows stay.", markup=False)
    assets = list(defs.resolve_asset_graph().assets_defs)
    runs = batches(assets, _selected(settings, selection), instance, span)
    found = forecast(Lake(settings), assets, runs, instance, reuse=reuse)
    for it in found:
        console.print(_line(it), soft_wrap=True)
    n = Counter(it.verdict for it in found)
    more = f", {n['maybe']} more if their input changes" if n["maybe"] else ""
    console.print(
        f"Nothing was run. A run makes {counted(n['make'], 'table')}{more}, and keeps {n['keep']}.",
        soft_wrap=True,
    )


def _line(it: Forecast) -> str:
    said = f"although {it.reason}" if it.verdict == "keep" and it.reason else it.reason
    return _SHOWN[it.verdict].format(table=str(it.table), reason=escape(said)).rstrip()


def _selected(settings: Settings, selection: str) -> list[dg.AssetKey]:
    published = {key_of(name) for name in Lake(settings).names()}
    return select(defs, selection, published)
