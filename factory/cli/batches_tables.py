"""The status of a namespace and the contents of a batch, as a terminal shows them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TypeAlias

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from blender.global_batches.batch_description import BatchDescription
from blender.global_batches.log.reclaim import Reclaimed
from blender.global_batches.status import LaneStatus, NamespaceStatus, ago

_MOST_SLICES = 16


Lines: TypeAlias = list[Text | Table]


def print_lines(lines: Lines, console: Console) -> None:
    """Print texts as they are, so that addresses can be copied, and tables as the terminal has room."""
    for part in lines:
        console.print(part, soft_wrap=isinstance(part, Text))


def status_lines(status: NamespaceStatus) -> Lines:
    """What readers wait for, then the head of the log, then the lanes."""
    namespace = status.namespace
    if status.is_ended:
        first = Text(f"Ended: {counted(status.steps, 'step')}, and no more will come.", style="green")
    else:
        verb = "is" if status.steps == 1 else "are"
        first = Text(f"{counted(status.steps, 'step')} {verb} readable. {status.waits_for}", style="bold")
    source = "" if status.source is None else ", ".join(f"{k} {v}" for k, v in sorted(status.source.items()))
    lanes = "lanes come and go" if namespace.lanes is None else counted(namespace.lanes, "lane")
    batches = counted(status.steps + status.waiting, "batch", "batches")
    created = datetime.fromtimestamp(namespace.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    head = (
        f"\nnamespace  {namespace.id} at {status.uri}, created {created}\n"
        f"batches    {namespace.order} order, {lanes}, dp={namespace.dp},cp={namespace.cp}\n"
        f"source     {source or 'not recorded'}\n"
        f"log        version {status.version:,}, {size(status.n_bytes)} in {batches}, {status.waiting:,} of "
        "them ahead of a missing step\n"
        f"content    {status.content}\n"
        f"kept       {_kept(status)}\n"
    )
    runs: Lines = [_runs(status), Text()] if status.runs else []
    n_unlisted = status.unlisted_lanes
    rest_line = [Text(f"and {counted(n_unlisted, 'finished lane')} before")] if n_unlisted else []
    return [first, Text(head), *runs, _lanes(status), *rest_line, Text(), _commits(status)]


def reclaimed_line(reclamation: Reclaimed, is_dry: bool) -> str:
    """The batches that a reclaimer has deleted, and the run that holds the rest."""
    verb = "would be deleted" if is_dry else "deleted"
    batches = counted(reclamation.batches, "batch", "batches")
    orphans = counted(reclamation.orphans, "orphan")
    holder = reclamation.runs.holder
    if holder is None:
        rest = f"no run is open, and {size(reclamation.live_bytes)} are kept"
    else:
        first = f"{reclamation.runs.open[holder].oldest_step:,}"
        rest = f"run {holder} holds the steps from {first} on, and {size(reclamation.live_bytes)} are kept"
    return f"{batches} ({size(reclamation.n_bytes)}) and {orphans} {verb}; {rest}."


def _kept(status: NamespaceStatus) -> str:
    """The bytes that are held, and by whom."""
    orphans = "" if status.orphans is None else f", {counted(status.orphans, 'orphan')}"
    garbage = (
        f"{size(status.reclaimable_bytes)} in {counted(status.reclaimable, 'batch', 'batches')}{orphans} "
        "to reclaim"
    )
    if not status.runs:
        return f"{size(status.live_bytes)}, as no run is open; {garbage}"
    first = status.runs[0]
    return f"{size(status.live_bytes)} from step {first.first_step:,} on, for run {first.name}; {garbage}"


def _runs(status: NamespaceStatus) -> Table:
    """The open runs, and the checkpoints for which they hold batches."""
    table = _table("run", ">holds from", "live checkpoints", "process")
    for run in status.runs:
        checkpoints = ", ".join(f"{name} ({step:,})" for name, step in run.checkpoints.items()) or "none yet"
        table.add_row(escape(run.name), f"{run.first_step:,}", escape(checkpoints), run.process)
    return table


def batch_lines(batch: BatchDescription) -> Lines:
    """The object of a step, its columns, and its slices."""
    head = (
        f"step {batch.step:,} of {batch.uri}\n"
        f"object     {batch.name}, {batch.n_bytes:,} bytes\n"
        f"lane       {batch.lane}, batch {batch.sequence:,}, epoch {batch.epoch}\n"
        f"origin     {json.dumps(batch.origin)}\n"
    )
    columns = _table("column", "dtype", "shape in a slice", "")
    for column in batch.columns:
        shapes = " or ".join(dict.fromkeys(str(list(shape)) for shape in column.shapes))
        columns.add_row(escape(column.name), column.dtype, escape(shapes), "cut for cp" if column.cut else "")
    slices = _table(">dp", ">chunk", ">offset", ">bytes", ">crc32")
    for part in batch.slices[:_MOST_SLICES]:
        slices.add_row(
            f"{part.dp}", f"{part.chunk}", f"{part.offset:,}", f"{part.n_bytes:,}", f"{part.checksum:08x}"
        )
    left = len(batch.slices) - _MOST_SLICES
    more = Text(f"and {left:,} more slices (--json lists all)") if left > 0 else Text()
    return [Text(head), columns, Text(), slices, more]


def _lanes(status: NamespaceStatus) -> Table:
    """The progress of each lane, and its writer."""
    is_assigned = status.namespace.order == "assigned"
    steps = ("next step", "behind") if is_assigned else ()
    table = _table(
        "lane", "state", *(f">{name}" for name in ("epoch", "batches", *steps)), "last commit", "process"
    )
    for lane in status.lanes:
        at = "-" if lane.committed_at is None else f"{ago(status.read_at - lane.committed_at)} ago"
        places = (lane.next_step, lane.behind) if is_assigned else ()
        counts = [f"{count:,}" for count in (lane.epoch, lane.batches, *places)]
        table.add_row(escape(lane.name), _state(lane), *counts, at, lane.process or "-")
    return table


def _commits(status: NamespaceStatus) -> Table:
    """The outcomes of the commits of each lane's producer, and the policy that paces them."""
    table = _table(
        "lane", *(f">{name}" for name in ("won", "lost", "window", "gap", "rate", "lanes", "mean lag"))
    )
    for lane in status.lanes:
        figures = lane.figures
        if figures:
            table.add_row(
                escape(lane.name),
                f"{figures['attempts'] - figures['lost']:,}",
                f"{figures['lost']:,}" + (f" ({lane.conflicts:.0%})" if lane.conflicts else ""),
                seconds(figures["window"]),
                seconds(figures["gap"]),
                "-" if lane.rate is None else f"{lane.rate:.2g} / s",
                f"{figures['lanes']}",
                seconds(figures["mean_lag"]),
            )
    return table


def _table(*names: str) -> Table:
    """A table of columns; `>` marks columns of numbers."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(
            name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold"
        )
    return table


def _state(lane: LaneStatus) -> str:
    if lane.is_closed:
        return "finished"
    return "open" if lane.epoch else "[yellow]not opened[/]"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun: `1 lane`, `4 lanes`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def seconds(value: float | None) -> str:
    """A time of milliseconds or seconds."""
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.0f} ms"


def size(n_bytes: int) -> str:
    """A number of bytes."""
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:,.1f} KB"
