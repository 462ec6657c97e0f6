"""Run assets through Dagster in this process, with progress bars.

A run has its own thread, because Dagster and pyspark both install interrupt handlers in the main thread, and
pyspark's calls the JVM in the middle of another call. The main thread waits, and ends an interrupted run as a
kill would: the JVM first, so that nothing more is written. Half-written rows are on audit branches, which the
next run drops.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from factory.cli.check_warnings import CheckWarning, show_warnings, warnings_of
from factory.cli.failures import run_error
from factory.cli.streams import OfThisThread, no_traces_of_a_dead_jvm
from factory.counted import counted
from factory.lake.lock import writing
from factory.lake.names import TableName
from factory.orchestration.host.execution import RunOutcome, run_assets
from factory.orchestration.host.instance import open_instance
from factory.orchestration.host.partition_span import Span
from factory.orchestration.host.partitions import RunBatch, batches
from factory.orchestration.host.resources import NAMED_TAG, REUSE_TAG
from factory.orchestration.table import progress
from factory.orchestration.table.spark_failure import require_jvm
from factory.settings import Settings
from factory.spark.session import kill_jvm
from jobs.watched import Watched, notice

_LOOK_EVERY_S = 0.2  # an interrupt just before a wait, or in another thread, does not end the wait
_ENDS = ("published", "reused", "left out", "failed")  # the final phases of an asset
_INTERRUPTED = "Interrupted: published tables are unchanged, and the next run cleans up."


@dataclass
class RunReport:
    """The results of a selection's runs: seconds, rows, rejected records and reasons by asset."""

    run_ids: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)  # by source, if any
    reused: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)  # of tables that were made again, or kept despite
    warnings: list[CheckWarning] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left_out: dict[str, progress.Progress] = field(default_factory=dict)  # tables that only people read

    def closing(self) -> str:
        """Return the closing line of a successful run."""
        made, kept, warned = len(self.rows) - len(self.reused), len(self.reused), len(self.warnings)
        return f"{counted(made, 'table')} made, {kept} kept as they were, {counted(warned, 'warning')}."

    def left_out_line(self) -> str:
        """Return one line for the tables that were left out, empty if there are none."""
        if not self.left_out:
            return ""
        first, *others = self.left_out
        fewest, most = (f(event.rows or 0 for event in self.left_out.values()) for f in (min, max))
        there = f"{fewest:,} to {most:,}" if fewest < most else f"{most:,}"
        subject = f"{1 + len(others)} tables that" if others else f"{first}, which"
        condition = " or ".join(dict.fromkeys(event.reason for event in self.left_out.values()))
        remedy = f"`factory materialize {first}` makes {'one' if others else 'it'}"
        verb = "is" if most == 1 else "are"
        return f"left out {subject} only people read: {condition}, and there {verb} {there}; {remedy}."


warnings.filterwarnings("ignore", category=dg.BetaWarning)  # Dagster warns of its own internals


def execute(
    definitions: dg.Definitions,
    settings: Settings,
    keys: Sequence[dg.AssetKey],
    console: Console,
    *,
    reuse: bool,
    span: Span | None = None,
    watched: Iterable[Watched] = (),
    named_tables: Iterable[TableName] = (),
) -> RunReport:
    """Materialize `keys`; with `reuse`, keep tables with unchanged code, configuration and upstream.

    Partitioned tables get the partitions of `span`, or all, including new folders below `watched` paths.
    A table that is made on demand is made if it is among the `named_tables`.
    Warnings of checks are printed with their figures. Raises RunFailed naming every failed asset,
    MachineError if the machine lacks something (a JVM), LakeLocked if another run writes the lake,
    ConfigurationError for an unknown partition.
    """
    with writing(settings, "a run that is just starting"):
        pass  # report the lock's holder before anything starts; the run takes the lock itself
    instance = open_instance(settings)
    for gone in notice(watched, instance):
        console.print(f"{gone} has no folder any more. Its rows stay.", markup=False)
    _silence_logs()
    job = definitions.resolve_implicit_global_asset_job_def()
    report = RunReport()
    names = " ".join(map(str, named_tables))
    tags = ({REUSE_TAG: "true"} if reuse else {}) | ({NAMED_TAG: names} if names else {})

    def run(batch: RunBatch) -> RunOutcome:
        return run_assets(
            job,
            instance,
            batch.keys,
            tags={**batch.tags, **tags},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    failed: RunOutcome | None = None
    with no_traces_of_a_dead_jvm(), _drawn(console, _steps(definitions, keys), report) as bar:
        for batch in batches(definitions.resolve_asset_graph().assets_defs, keys, instance, span):
            try:
                outcome = _interruptible(lambda batch=batch: run(batch), bar)  # type: ignore[misc]
            except Exception as error:
                require_jvm(error)
                raise
            report.run_ids.append(outcome.run_id)
            report.warnings += warnings_of(outcome.check_evaluations)
            if not outcome.success:
                failed = outcome
                break
    show_warnings(report.warnings, console)
    if line := report.left_out_line():
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if failed is not None:
        require_jvm()  # whatever errors the assets raised because of it
        skipped = _steps(definitions, keys) - len(report.rows) - len(report.failed) - len(report.left_out)
        raise run_error(failed, skipped)
    return report


def _interruptible(work: Callable[[], RunOutcome], bar: Progress) -> RunOutcome:
    """Run `work` in a thread while `bar` is drawn; an interrupt kills the JVM and ends both."""
    given: list[RunOutcome] = []
    raised: list[BaseException] = []

    def body() -> None:
        try:
            given.append(work())
        except BaseException as error:  # raised by the thread that waits
            raised.append(error)

    thread = threading.Thread(target=body, name="run", daemon=True)
    said_to = {number: os.dup(number) for number in (1, 2)}
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_EVERY_S)
    except KeyboardInterrupt:
        # While a step runs, Dagster redirects output to a file that another process copies to the terminal:
        # output written now, at the end of this process, would be lost.
        for number, original in said_to.items():
            os.dup2(original, number)
        # Threads that find the JVM dead print stack traces: py4j to its log, pyspark's accumulator server to
        # stderr. On a terminal the progress bar owns stderr and restores the old one.
        bar.live.stop()
        logging.disable()
        sys.stderr = OfThisThread(sys.stderr)
        kill_jvm()
        raise KeyboardInterrupt(_INTERRUPTED) from None
    finally:
        for original in said_to.values():
            os.close(original)
    if raised:
        raise raised[0]
    return given[0]


def _steps(definitions: dg.Definitions, keys: Sequence[dg.AssetKey]) -> int:
    chosen = set(keys)
    return sum(1 for asset in definitions.resolve_asset_graph().assets_defs if asset.keys & chosen)


@contextmanager
def _drawn(console: Console, total: int, report: RunReport) -> Iterator[Progress]:
    """Draw progress: a bar on a terminal, one line per asset elsewhere."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", justify="left"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("starting Spark", total=total)
    began: dict[str, float] = {}

    def listener(event: progress.Progress) -> None:
        if event.phase == "started":
            if event.asset in report.failed:  # Dagster retries transient failures
                report.failed.remove(event.asset)
                bar.advance(task, -1)
                bar.print(f"[yellow]again[/]   {event.asset}")
            began[event.asset] = time.monotonic()
            bar.update(task, description=event.asset)
            return
        if event.phase not in _ENDS:
            bar.update(task, description=f"{event.asset}: {event.note or event.phase}")
            return
        seconds = time.monotonic() - began[event.asset]
        bar.advance(task)
        if event.phase == "failed":
            report.failed.append(event.asset)
            bar.print(f"[red]failed[/]  {event.asset}")
            return
        if event.phase == "left out":
            report.left_out[event.asset] = event
            return
        report.rows[event.asset] = event.rows or 0
        report.seconds[event.asset] = seconds
        if event.phase == "reused":
            report.reused.append(event.asset)
        did = "[dim]kept[/]  " if event.phase == "reused" else "[green]made[/]  "
        line = f"{did}{event.asset:<40} {event.rows or 0:>10,} rows {seconds:>7.1f} s"
        if event.rejected:
            report.rejected[event.asset] = event.rejected
            line += f"  [yellow]{event.rejected:,} rejected[/]"
        if event.note:
            line += f"  [yellow]{event.note}[/]"
        if event.reason:
            report.reasons[event.asset] = event.reason
            line += f"  {'although' if event.phase == 'reused' else 'because'} {escape(event.reason)}"
        bar.print(line, highlight=False, soft_wrap=True)

    with bar, progress.listening(listener):
        yield bar


def _silence_logs() -> None:
    """Silence Dagster, PyIceberg and py4j: their logs repeat the progress bar and the event log."""
    for name in ("dagster", "pyiceberg", "py4j", "alembic"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
