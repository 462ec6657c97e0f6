"""Trace documents to the steps that serve them, and a step back to its documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blender.catalog.blends import Blends, open_blends
from blender.errors import BrokenBlend, SourceGone
from blender.opened.blend import Blend
from blender.records import ExplainedRow
from factory.counted import counted
from factory.errors import DamagedFile, TableNotFound
from factory.explain.find import find_ids
from factory.explain.stages.serving import Served
from factory.explain.trace import DocumentTrace, trace_ids, trace_known, trace_served
from factory.lake.names import TableName
from factory.lake.tables import Lake
from factory.settings import Settings

_EPOCHS = 3  # of a blend, whose steps a trace names


@dataclass(frozen=True)
class MixtureUpdate:
    """The update of a blend that gave a step its mixture."""

    blend: str
    since: int
    """Its first step."""
    weights: dict[str, int]
    """Rows a step by source; empty for a schedule."""


@dataclass(frozen=True)
class StepTrace:
    """The rows of a step, and the trace of every document in them that a raw table holds, by doc_id."""

    blend: str
    offset: int
    rows: list[ExplainedRow]
    documents: dict[str, DocumentTrace]
    mixture: MixtureUpdate | None = None
    """None if the blend was made with the mixture of this step."""


def served_by(settings: Settings) -> tuple[list[Blend], list[str]]:
    """Every blend of the lake, and a sentence for each that lost its data, or one for all such retired ones.

    A retired blend has served its steps all the same; its snapshots may expire.
    """
    blends = open_blends(settings)
    opened, lost, n_expired = [], [], 0
    for stored in blends.list(with_retired=True):
        try:
            opened.append(blends.open(stored.id))
        except (SourceGone, TableNotFound, DamagedFile, BrokenBlend) as error:
            if stored.pins.retired and isinstance(error, SourceGone | TableNotFound):
                n_expired += 1
            else:
                lost.append(f"Blend {stored.id} is left out: {error}")
    if n_expired:
        verb = "is" if n_expired == 1 else "are"
        lost.append(f"{counted(n_expired, 'retired blend')} {verb} left out: their snapshots have expired.")
    return opened, lost


def trace_text(settings: Settings, text: str) -> tuple[list[DocumentTrace], list[str]]:
    """The trace of every document that `text` names (`find_ids`), and a sentence per unreadable blend."""
    lake = Lake(settings)
    opened, lost = served_by(settings)
    blend_steps = Served(lake, opened, _EPOCHS)
    return trace_ids(lake, find_ids(lake, text, blend_steps.versions()), blend_steps), lost


def trace_step(settings: Settings, blend: str, offset: int) -> StepTrace:
    """The rows of a step and the traces of their documents, as they were when the rows were made.

    If snapshots behind the rows have expired, the traces follow the newest tables.
    """
    blends = open_blends(settings)
    opened = blends.open(blend)
    rows = opened.explain(offset)
    ids = list(dict.fromkeys(segment.doc_id for row in rows for segment in row.segments))
    lake, tables = Lake(settings), {row.table for row in rows}
    blend_steps = Served(lake, [opened], _EPOCHS)
    documents = trace_served(lake, ids, blend_steps, set(map(TableName.parse, tables)))
    newest = trace_known(lake, [doc_id for doc_id in ids if doc_id not in documents], blend_steps)
    documents |= {doc_id: _through(tables, of_one) for doc_id, of_one in newest.items()}
    return StepTrace(blend, offset, rows, documents, mixture_of(blends, blend, offset))


def mixture_of(blends: Blends, blend: str, offset: int) -> MixtureUpdate | None:
    """The update that holds at step `offset` of a blend; None before the first one."""
    record = blends.get(blend)
    while record.config.offset > offset:
        record = blends.get(record.config.parent)
    config = record.config
    if not config.parent:
        return None
    weights = {} if config.schedule else {source.name: source.weight for source in config.sources}
    return MixtureUpdate(record.id, config.offset, weights)


def _through(tables: set[str], traces: Sequence[DocumentTrace]) -> DocumentTrace:
    """Return the trace of a document that leads through one of the packed tables, or else its first."""
    return next((trace for trace in traces if _ways(trace) & tables), traces[0])


def _ways(trace: DocumentTrace) -> set[str]:
    """The packed tables through which a document goes in its dataset and the variants of it."""
    return {way.sequences for way in (trace, *trace.variants.values())}
