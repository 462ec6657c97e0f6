"""Trace documents to the steps that serve them, and a step back to its documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blender.catalog.blends import open_blends
from blender.errors import BrokenBlend, SourceGone
from blender.opened.blend import Blend
from blender.records import ExplainedRow
from factory.errors import DamagedFile, TableNotFound
from factory.explain.find import find_ids
from factory.explain.trace import DocumentTrace, trace_documents, trace_known
from factory.lake.tables import Lake
from factory.settings import Settings


@dataclass(frozen=True)
class StepTrace:
    """The rows of a step, and the trace of every document in them that a raw table holds, by doc_id."""

    blend: str
    offset: int
    rows: list[ExplainedRow]
    documents: dict[str, DocumentTrace]


def served_by(settings: Settings) -> tuple[list[Blend], list[str]]:
    """Every blend of the lake that is not retired, and a sentence for each blend that lost its data."""
    blends = open_blends(settings)
    opened, lost = [], []
    for stored in blends.list():
        try:
            opened.append(blends.open(stored.id))
        except (SourceGone, TableNotFound, DamagedFile, BrokenBlend) as error:
            lost.append(f"Blend {stored.id} is left out: {error}")
    return opened, lost


def trace_text(settings: Settings, text: str) -> tuple[list[DocumentTrace], list[str]]:
    """The trace of every document that `text` names (`find_ids`), and a sentence per unreadable blend."""
    lake = Lake(settings)
    opened, lost = served_by(settings)
    return trace_documents(lake, find_ids(lake, text), opened), lost


def trace_step(settings: Settings, blend: str, offset: int) -> StepTrace:
    """The rows of a step and the traces of their documents."""
    opened = open_blends(settings).open(blend)
    rows = opened.explain(offset)
    ids = list(dict.fromkeys(segment.doc_id for row in rows for segment in row.segments))
    traces = trace_known(Lake(settings), ids, [opened])
    tables = {row.table for row in rows}
    documents = {doc_id: _through(tables, of_one) for doc_id, of_one in traces.items()}
    return StepTrace(blend, offset, rows, documents)


def _through(tables: set[str], traces: Sequence[DocumentTrace]) -> DocumentTrace:
    """Return the trace of a document that leads through one of the packed tables, or else its first."""
    return next((trace for trace in traces if _ways(trace) & tables), traces[0])


def _ways(trace: DocumentTrace) -> set[str]:
    """The packed tables through which a document goes in its dataset and the variants of it."""
    return {way.sequences for way in (trace, *trace.variants.values())}
