"""The output of `factory tables` and `factory sample`."""

from __future__ import annotations

import json
import time
from typing import Any

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from factory.cli.error_boundary import raise_together
from factory.errors import TableNotFound
from factory.explain.tables import as_plain, published_tables
from factory.lake.names import TableName
from factory.lake.tables import Lake

_LONGEST = 1_200  # characters of a text shown in a sample


def show_tables(lake: Lake, console: Console, *, as_json: bool) -> None:
    """Print every published table: rows, size, time, content; then raise DamagedFile for damaged ones."""
    found, damaged = published_tables(lake)
    if as_json:
        console.print_json(json.dumps([as_plain(published) for published in found]))
        raise_together(damaged)
        return
    if not found:
        raise_together(damaged)
        raise TableNotFound(
            "The lake has no published table yet. Run the pipeline: make demo, or factory materialize '*'."
        )
    table = Table(box=None, header_style="bold")
    table.add_column(
        "table", no_wrap=True, overflow="ignore", min_width=max(len(str(it.table)) for it in found)
    )
    table.add_column("stage", no_wrap=True)
    for column in ("rows", "MB", "published"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("content", overflow="crop")  # the only column that shrinks; JSON has all of it
    for it in found:
        when = time.strftime("%m-%d %H:%M", time.localtime(it.timestamp_ms / 1000))
        megabytes = f"{it.size_bytes / 1e6:,.1f}"
        table.add_row(str(it.table), it.table.stage, f"{it.rows:,}", megabytes, when, it.lineage.content[:12])
    console.print(table)
    raise_together(damaged)


def show_sample(rows: list[dict[str, Any]], table: TableName, console: Console) -> None:
    """Print one panel per row, with the text last."""
    for row in rows:
        facts = Text()
        for name, value in row.items():
            if name not in ("text", "content", "partition") and value is not None:
                facts.append(f"{name} ", "bold").append(f"{_short(value)}\n")
        text = row.get("text")
        body = Group(facts, Text(text[:_LONGEST], "dim")) if isinstance(text, str) else facts
        console.print(Panel(body, title=str(table), title_align="left"))


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, list) and value and isinstance(value[0], dict) and "rule" in value[0]:
        return ", ".join(f"{it['rule']} = {it['value']:g} (limit {it['threshold']:g})" for it in value)
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."
