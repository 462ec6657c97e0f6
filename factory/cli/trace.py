"""What `factory trace` prints: a document's way, or the documents of a step."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from blender.catalog.blends import open_blends
from blender.errors import BrokenBlend, SourceGone
from blender.opened.blend import Blend
from blender.records import ExplainedRow
from factory.errors import DamagedFile, TableNotFound
from factory.explain.trace import DocumentTrace, find_ids, trace_documents, trace_known
from factory.lake.tables import Lake
from factory.settings import Settings

_SHOWN = 8  # steps and pieces listed before "and N more"


@dataclass(frozen=True)
class OpenBlend:
    """A blend as tracing asks of it."""

    blend: Blend

    @property
    def blend_id(self) -> str:
        """The blend's id."""
        return self.blend.id

    def snapshots(self) -> Mapping[str, int]:
        """The snapshot it reads of each table of its sources."""
        return {source.config.table: source.reader.snapshot_id for source in self.blend.sources}

    def serves(self, table: str, ordinals: Sequence[int], first: int) -> Iterable[tuple[int, int, int]]:
        """(ordinal, offset, epoch) of the `first` steps that serve each ordinal."""
        for source in self.blend.sources:
            if source.config.table == table:
                for ordinal in ordinals:
                    for place in self.blend.locate(source.config.name, ordinal, epochs=first):
                        yield ordinal, place.offset, place.epoch


@dataclass(frozen=True)
class StepTrace:
    """The rows of a step and the way of every document in them that a raw table holds, by doc_id."""

    blend: str
    offset: int
    rows: list[ExplainedRow]
    documents: dict[str, DocumentTrace]


def served_by(settings: Settings) -> tuple[list[OpenBlend], list[str]]:
    """Every blend of the lake that is not retired, and a sentence for each that lost its data."""
    blends = open_blends(settings)
    opened, lost = [], []
    for stored in blends.list():
        try:
            opened.append(OpenBlend(blends.open(stored.id)))
        except (SourceGone, TableNotFound, DamagedFile, BrokenBlend) as error:
            lost.append(f"Blend {stored.id} is left out: {error}")
    return opened, lost


def trace_text(settings: Settings, text: str) -> tuple[list[DocumentTrace], list[str]]:
    """The way of every document that `text` names, a doc_id or a key, and which blends could not be asked."""
    lake = Lake(settings)
    opened, lost = served_by(settings)
    return trace_documents(lake, find_ids(lake, text), opened), lost


def trace_step(settings: Settings, blend: str, offset: int) -> StepTrace:
    """The rows of a step and the way of their documents."""
    opened = open_blends(settings).open(blend)
    rows = opened.explain(offset)
    ids = list(dict.fromkeys(segment.doc_id for row in rows for segment in row.segments))
    return StepTrace(blend, offset, rows, trace_known(Lake(settings), ids, [OpenBlend(opened)]))


def show_documents(
    traces: list[DocumentTrace], lost: Sequence[str], console: Console, *, as_json: bool
) -> None:
    """Print each document's way, and the sentences on blends that were left out to stderr."""
    for sentence in lost:
        sys.stderr.write(f"{sentence}\n")
    if as_json:
        console.print_json(json.dumps([as_plain(trace) for trace in traces], default=str))
        return
    for trace in traces:
        console.print(document_tree(trace))


def as_plain(trace: DocumentTrace) -> dict[str, Any]:
    """A trace as plain values, for JSON; snapshot ids are text, because many a reader rounds them."""
    return {
        **asdict(trace),
        "tables": {table: str(at) for table, at in trace.tables.items()},
        "variants": {name: as_plain(of) for name, of in trace.variants.items()},
    }


def show_step(step: StepTrace, console: Console, *, as_json: bool) -> None:
    """Print the rows of a step, each with its documents and their sources."""
    if as_json:
        plain: dict[str, Any] = asdict(step)
        console.print_json(json.dumps(plain, default=str))
        return
    tree = Tree(f"step [bold]{step.offset:,}[/] of blend {step.blend}")
    for row in step.rows:
        branch = tree.add(f"row {row.row}: sequence {row.ordinal:,} of {row.table} (epoch {row.epoch})")
        for segment in row.segments:
            tokens = f"tokens {segment.doc_offset:,} to {segment.doc_offset + segment.length:,} of "
            trace = step.documents.get(segment.doc_id)
            if trace is None:
                branch.add(f"{tokens}{escape(segment.doc_id)}, which no raw table holds")
                continue
            licence = trace.about.get("licence") or "licence unknown"
            branch.add(f"{tokens}{escape(trace.source)} / [bold]{escape(trace.key)}[/] ({escape(licence)})")
        if not row.segments:
            branch.add("its table does not say which documents it holds")
    console.print(tree)


def document_tree(trace: DocumentTrace) -> Tree:
    """A document's way, from its source to what became of it."""
    tree = Tree(f"[bold]{escape(trace.source)} / {escape(trace.key)}[/]  ({trace.doc_id})")
    about = {name: value for name, value in trace.about.items() if name not in ("place", "reason", "detail")}
    tree.add(escape("source: " + ", ".join(f"{name} {value}" for name, value in about.items())))
    _add_way(tree, trace, trace.tables)
    for name, variant in trace.variants.items():
        _add_way(tree.add(f"variant [bold]{name}[/]"), variant, variant.tables.keys() - trace.tables.keys())
    return tree


def _add_way(tree: Tree, trace: DocumentTrace, shown: Collection[str]) -> None:
    """The tables of a way that are to be shown, and how it ended."""
    for table, snapshot in trace.tables.items():
        if table in shown:
            tree.add(f"{table} [dim]at snapshot {snapshot}[/]{_at(trace, table)}")
    colour = {"served": "green", "packed": "green", "under_way": "yellow"}.get(trace.outcome, "red")
    tree.add(f"[{colour}]{escape(trace.reason or 'no later table holds it yet')}[/]")


def _at(trace: DocumentTrace, table: str) -> str:
    namespace = table.split(".")[0]
    if namespace == "filtered":
        return ": " + (f"fails {len(trace.rejections)} rule(s)" if trace.rejections else "passes every rule")
    if namespace == "dedup" and trace.component is not None:
        return ": " + ("removed" if trace.outcome in ("duplicate", "repository") else "kept")
    if namespace == "sorted":
        return f": place {trace.place} of its repository"
    if namespace == "packed":
        pieces = [f"sequence {o:,} (tokens {at:,} to {at + n:,})" for o, at, n in trace.placements[:_SHOWN]]
        steps = [f"step {it.offset:,} (epoch {it.epoch})" for it in trace.servings[:_SHOWN]]
        more = f" and {len(trace.placements) - _SHOWN} more" if len(trace.placements) > _SHOWN else ""
        served = f"; served at {', '.join(steps)}" if steps else ""
        return f": {', '.join(pieces)}{more}{served}"
    return ""
