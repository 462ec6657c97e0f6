"""The tables of `factory blend list` and `factory blend show`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from rich.console import Console
from rich.table import Table

from blender.catalog.blends import StoredBlend, open_blends
from blender.catalog.description import blend_record
from blender.opened.agreement import shown
from blender.records import BlendRecord, Description, Schedule
from blender.trainer.local import LocalBlender
from factory.lake.names import TableName, is_validation
from factory.settings import Settings

_BETWEEN = {
    "stepped": "each until the next",
    "linear": "in straight lines between",
    "cosine": "in half waves between",
    "constant": "throughout",
}


def show_blends(settings: Settings, console: Console, *, with_retired: bool, as_json: bool) -> None:
    """Print every blend of the lake: seed, sources with their rows a step, and the blend it updates."""
    blends = open_blends(settings).list(with_retired)
    if as_json:
        console.print_json(json.dumps([_plain(blend) for blend in blends]))
        return
    table = Table(box=None, header_style="bold")
    indent = 10 if any(blend.config.parent for blend in blends) else 0
    table.add_column("blend", no_wrap=True, min_width=indent + 32)  # a truncated id is useless
    for column in ("made", "seed", "sources"):
        table.add_column(column)
    for blend in blends:
        record = blend_record(blend)
        parent = f"\n  updates {record.parent}" if record.parent else ""
        since = f"\nfrom step {record.offset:,} on" if record.parent else ""
        status = "\nretired" if record.retired else ""
        sources = _mixture(record) + since + status
        table.add_row(record.id + parent, blend.pins.created_at[:16], str(record.seed), sources)
    console.print(table if blends else "No blend yet. Make one: factory blend create, or factory demo.")


def show_blend(settings: Settings, blend: str, console: Console, *, as_json: bool = False) -> None:
    """Print the sources, schedule and length of a blend; raises BlendNotFound and what opening it raises."""
    blender = LocalBlender(settings)
    description = blender.describe(blend)
    records = list(_records(blender, blend))
    if as_json:
        plain = {
            **asdict(description),
            "retired": records[0].retired,
            "schedule": _schedule(records[0].schedule),
            "updates": _origins(records),
        }
        console.print_json(json.dumps(plain))
        return
    console.print(_sources(description, records[0].schedule))
    if records[0].schedule is not None:
        console.print()
        show_schedule(records[0].schedule, console)
    validation = [
        source.source.name
        for source in description.sources
        if is_validation(TableName.parse(source.source.table))
    ]
    if validation:
        console.print(f"Validation, not for training: {', '.join(validation)}.", soft_wrap=True)
    steps = "does not end" if description.steps is None else f"has {description.steps:,} steps"
    padding = "" if description.padding is None else f"; {description.padding:.1%} of a step is padding"
    console.print(f"Blend {description.blend} {steps}{padding}.", soft_wrap=True)
    if records[0].retired:
        console.print("It is retired: its snapshots may expire.", soft_wrap=True)
    for record in records[:-1]:
        console.print(f"Before step {record.offset:,} it equals blend {record.parent}.", soft_wrap=True)


def show_schedule(schedule: Schedule, console: Console) -> None:
    """Print the shares of the sources at the steps that a schedule names, and how they change in between."""
    console.print(f"{schedule.rows_per_step:,} rows a step, {_BETWEEN[schedule.kind]}:")
    console.print(_knots(schedule))
    console.print()


def schedule_at(settings: Settings, blend: str, offset: int) -> Schedule | None:
    """Return the schedule that a blend follows at a step: its own, or before an update its parent's."""
    records = _records(LocalBlender(settings), blend)
    return next(record for record in records if record.offset <= offset).schedule


def or_dash(number: float | None, kind: str) -> str:
    """Format a figure for people; an unknown figure is a dash."""
    return "-" if number is None else format(number, kind)


def _records(blender: LocalBlender, blend: str) -> Iterator[BlendRecord]:
    """Yield a blend and the ones it updates, newest first."""
    record = blender.get(blend)
    yield record
    while record.parent:
        record = blender.get(record.parent)
        yield record


def _sources(description: Description, schedule: Schedule | None) -> Table:
    table = Table(box=None, header_style="bold")
    has_names = any(source.source.name != source.source.table for source in description.sources)
    for column in ("source", "table") if has_names else ("table",):
        table.add_column(column, no_wrap=True)
    weight = ("weight",) if schedule is None else ()  # a schedule has weights of its own at every step
    for column in ("rows", *weight, "of", "tokens", "share", "padding"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("tokenizer", overflow="fold")
    for source in description.sources:
        name = source.source.name
        table.add_row(
            *((name, source.source.table) if has_names else (source.source.table,)),
            f"{source.rows:,}",
            *((str(source.source.weight),) if schedule is None else ()),
            or_dash(source.sequence_length, ","),
            or_dash(source.tokens, ","),
            or_dash(source.token_share, ".1%"),
            or_dash(source.padding, ".1%"),
            shown(source.tokenizer, source.tokenizer_table) if source.tokenizer else "-",
        )
    return table


def _knots(schedule: Schedule) -> Table:
    """The shares of the rows of a step at each knot, and between the knots."""
    table = Table(box=None, header_style="bold")
    table.add_column("at step", justify="right", no_wrap=True)
    names = list(dict.fromkeys(name for _, proportions in schedule.knots for name in proportions))
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for offset, proportions in schedule.knots:
        total = sum(proportions.values())
        table.add_row(f"{offset:,}", *(f"{proportions.get(name, 0) / total:.1%}" for name in names))
    return table


def _mixture(record: BlendRecord) -> str:
    """The weights of a blend, or its schedule from the first knot to the last, in one line."""
    if record.schedule is None:
        return ", ".join(f"{source.name} x {source.weight}" for source in record.sources)
    knots = [_knot(offset, proportions) for offset, proportions in record.schedule.knots]
    ends = knots if len(knots) < 3 else [knots[0], f"{len(knots) - 2} more", knots[-1]]
    return f"{record.schedule.rows_per_step:,} rows, {record.schedule.kind}: {' -> '.join(ends)}"


def _knot(offset: int, proportions: Any) -> str:
    total = sum(proportions.values())
    shares = ", ".join(f"{name} {share / total:.0%}" for name, share in proportions.items())
    return f"{shares} at step {offset:,}"


def _plain(blend: StoredBlend) -> dict[str, Any]:
    record = blend_record(blend)
    return {**asdict(record), "schedule": _schedule(record.schedule), "created_at": blend.pins.created_at}


def _schedule(schedule: Schedule | None) -> dict[str, Any] | None:
    if schedule is None:
        return None
    knots = [{"offset": offset, "proportions": dict(shares)} for offset, shares in schedule.knots]
    return {"kind": schedule.kind, "rows_per_step": schedule.rows_per_step, "knots": knots}


def _origins(records: Sequence[BlendRecord]) -> list[dict[str, Any]]:
    return [{"blend": older.id, "before_step": newer.offset} for newer, older in pairwise(records)]
