"""The output of `factory trace`: the path of a document, or the documents of a step."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from blender.records import Segment
from factory.counted import counted
from factory.explain.batches import BatchTrace
from factory.explain.stages.document_trace import DocumentTrace
from factory.explain.stages.registry import line
from factory.explain.steps import MixtureUpdate, StepTrace
from factory.lake.names import TableName

_SHOWN = 8  # steps of a blend listed before "and N more"


def show_documents(
    traces: list[DocumentTrace], lost: Sequence[str], console: Console, *, as_json: bool
) -> None:
    """Print each trace, and the sentences on blends that could not be opened to stderr."""
    for sentence in lost:
        sys.stderr.write(f"{sentence}\n")
    if as_json:
        console.print_json(json.dumps([as_plain(trace) for trace in traces], default=str))
        return
    for trace in traces:
        console.print(document_tree(trace))


def as_plain(trace: DocumentTrace) -> dict[str, Any]:
    """Return a trace as plain values for JSON; snapshot ids are text, because many readers round them."""
    return {
        **asdict(trace),
        "tables": {table: str(at) for table, at in trace.tables.items()},
        "variants": {name: as_plain(of) for name, of in trace.variants.items()},
        "descendants": [as_plain(child) for child in trace.descendants],
    }


def show_step(
    step: StepTrace,
    console: Console,
    *,
    as_json: bool,
    n: int | None = None,
    texts: Mapping[int, Sequence[Text]] = {},
) -> None:
    """Print the first `n` rows of a step, each with its documents, their sources and their `texts`, if any.

    JSON has all rows, without texts.
    """
    if as_json:
        plain: dict[str, Any] = asdict(step)
        console.print_json(json.dumps(plain, default=str))
        return
    tree = Tree(f"step [bold]{step.offset:,}[/] of blend {step.blend}")
    if step.mixture is not None:
        tree.add(_mixture_line(step.mixture))
    for row in step.rows[:n]:
        branch = tree.add(f"row {row.row}: sequence {row.ordinal:,} of {row.table} (epoch {row.epoch})")
        for segment, text in zip_longest(row.segments, texts.get(row.row, ())):
            document = branch.add(_document_line(segment, step.documents.get(segment.doc_id)))
            if text is not None:
                document.add(text)
        if not row.segments:
            branch.add("its table does not say which documents it holds")
    if n is not None and len(step.rows) > n:
        n_more = len(step.rows) - n
        tree.add(f"... {counted(n_more, 'more row')}: -n {len(step.rows)} shows all")
    console.print(tree)


def _mixture_line(mixture: MixtureUpdate) -> str:
    """Return the update that gave a step its weights, and the weights."""
    weights = ", ".join(f"{escape(name)} {weight:,}" for name, weight in mixture.weights.items())
    return f"since step {mixture.since:,}, by update {mixture.blend}: {weights or 'a schedule of its own'}"


def _document_line(segment: Segment, trace: DocumentTrace | None) -> str:
    """Return the token range, source, key, license and id of a document in a row."""
    tokens = f"tokens {segment.doc_offset:,} to {segment.doc_offset + segment.length:,} of "
    if trace is None:
        return f"{tokens}{escape(segment.doc_id)}, which no raw table holds"
    license = trace.about.get("license") or "license unknown"
    name = f"{escape(trace.source)} / [bold]{escape(trace.key)}[/]"
    return f"{tokens}{name} ({escape(license)}) [dim]{segment.doc_id}[/]"


def show_batch(
    trace: BatchTrace,
    console: Console,
    *,
    as_json: bool,
    n: int | None = None,
    texts: Mapping[int, Sequence[Text]] = {},
) -> None:
    """Print the location of a durable batch, and the rows and documents of its step."""
    batch = trace.batch
    if as_json:
        console.print_json(json.dumps({"batch": batch.described(), "step": asdict(trace.step)}, default=str))
        return
    console.print(
        f"step [bold]{batch.step:,}[/] of namespace {batch.namespace} at {escape(batch.uri)}: batch "
        f"{batch.sequence:,} of lane `{escape(batch.lane)}`, {batch.n_bytes:,} bytes",
        soft_wrap=True,
    )
    show_step(trace.step, console, as_json=False, n=n, texts=texts)


def document_tree(trace: DocumentTrace) -> Tree:
    """Return the trace of a document as a tree, from its source to its outcome."""
    tree = Tree(f"[bold]{escape(trace.source)} / {escape(trace.key)}[/]  ({trace.doc_id})")
    about = {
        name: value for name, value in trace.about.items() if name not in ("location", "reason", "detail")
    }
    tree.add(escape("source: " + ", ".join(f"{name} {value}" for name, value in about.items())))
    _add_way(tree, trace, trace.tables)
    for name, variant in trace.variants.items():
        _add_way(tree.add(f"variant [bold]{name}[/]"), variant, variant.tables.keys() - trace.tables.keys())
    for child in trace.descendants:
        tree.add(f"made from it, in [bold]{child.dataset}[/]").add(document_tree(child))
    return tree


def _add_way(tree: Tree, trace: DocumentTrace, shown: Collection[str]) -> None:
    """Add the tables in `shown` and the outcome to the tree."""
    for table, snapshot in trace.tables.items():
        if table in shown:
            says = line(trace, TableName.parse(table))
            tree.add(f"{table} [dim]at snapshot {snapshot}[/]{f': {says}' if says else ''}")
    colour = {"served": "green", "packed": "green", "under_way": "yellow"}.get(trace.outcome, "red")
    outcome = tree.add(f"[{colour}]{escape(trace.reason or 'no later table holds it yet')}[/]")
    if trace.duplicate_name and trace.duplicate_of != trace.kept_document:
        outcome.add(escape(f"exact copy of: {trace.duplicate_name}"))
    if trace.kept_name:
        outcome.add(escape(f"kept: {trace.kept_name}"))
    for rejection in trace.rejections:
        if rejection.evidence:
            outcome.add(escape(f"{rejection.rule}: {rejection.evidence}"))
    for steps in _servings(trace):
        outcome.add(steps)


def _servings(trace: DocumentTrace) -> Iterator[str]:
    """Yield a line for each blend that serves the document, and for each namespace that stores it."""
    steps: dict[str, list[str]] = defaultdict(list)
    for serving in trace.servings:
        text = ", an earlier text" if serving.of_earlier_text else ""
        steps[f"blend {serving.blend}{text}: "].append(f"step {serving.offset:,} (epoch {serving.epoch})")
    for batch in trace.stored:
        steps[f"stored in {escape(batch.uri)}: "].append(f"step {batch.step:,}")
    for place, pieces in steps.items():
        entries = list(dict.fromkeys(pieces))  # a step may hold several pieces of a document
        n_more = len(entries) - _SHOWN
        more = f" and {n_more:,} more" if n_more > 0 else ""
        yield f"{place}{', '.join(entries[:_SHOWN])}{more}"
