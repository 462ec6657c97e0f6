"""The output of `factory diff`."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import chain

from rich.console import Console
from rich.table import Table
from rich.text import Text

from factory.explain.diff import Diff, Example, Moved
from factory.explain.stages.dedup import EXACT_COPY

_EXAMPLE = 60  # characters of an example that stay on one line, however narrow the screen


def show(found: Diff, console: Console, *, as_json: bool) -> None:
    """Print both states, then the documents that leave and enter, by cause."""
    if as_json:
        console.print_json(json.dumps(asdict(found)))
        return
    for state in (found.left, found.right):
        at = f"[dim]at snapshot {state.snapshot}[/]"
        console.print(f"{state.table} {at}: {state.documents:,} documents", soft_wrap=True)
    console.print(f"{found.stay:,} documents are in both.")
    for verb, moved, state in (("leave", found.leave, found.left), ("enter", found.enter, found.right)):
        share = (
            f" ({moved.share:.1%} of {state.table}, {_megabytes(moved.n_bytes)} MB)"
            if moved.documents
            else ""
        )
        console.print(f"\n[bold]{moved.documents:,} {verb}[/]{share}")
        if moved.documents:
            console.print(_table(moved))


def _table(moved: Moved) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("by", no_wrap=True)
    for column in ("documents", "share", "alone", "MB"):
        table.add_column(column, justify="right", no_wrap=True)
    examples = [[_said(cause.cause, example) for example in cause.examples] for cause in moved.causes]
    longest = max(map(len, chain.from_iterable(examples)), default=0)
    table.add_column("for example", overflow="fold", min_width=min(_EXAMPLE, longest))
    for it, sentences in zip(moved.causes, examples, strict=True):
        counts = (f"{it.documents:,}", f"{it.share:.1%}", f"{it.alone:,}", _megabytes(it.n_bytes))
        table.add_row(Text(it.cause), *counts, Text("\n".join(sentences)))
    return table


def _said(cause: str, example: Example) -> str:
    """Format a document: its key, and the value and limit or the documents that decided."""
    name = f"{example.source} / {example.key}" if example.key else example.doc_id
    facts = [example.repository] if example.repository else []
    if example.duplicate_of and example.value is None:
        facts.append(f"joined through others to {example.duplicate_of}")
    elif example.duplicate_of:
        relation = "exact copy of" if (cause, example.value) == (EXACT_COPY, 1) else "like"
        facts.append(f"{relation} {example.duplicate_of} ({example.value:.4f})")
        if example.kept_document != example.duplicate_of:
            facts.append(f"kept: {example.kept_document}")
    if facts:
        return f"{name}: {'; '.join(facts)}"
    if example.threshold is not None:
        evidence = f"; {example.evidence}" if example.evidence else ""
        if example.value is None:
            return f"{name}: no value"
        return f"{name}: {example.value:g} (limit {example.threshold:g}){evidence}"
    return name


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.2f}"
