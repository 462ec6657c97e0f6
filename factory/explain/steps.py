"""Trace documents to the steps that serve them, and a step back to its documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blender.catalog.blends import open_blends
from blender.errors import BrokenBlend, SourceGone
from blender.opened.blend import Blend
from blender.records import ExplainedRow
from factory.errors import DamagedFile, TableNotFound
from factory.explain.trace import DocumentTrace, find_ids, trace_documents, trace_known
from factory.lake.tables import Lake
from factory.settings import Settings


@dataclass(frozen=True)
class BlendServings:
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
                    for place in self.blend.order.locate(source.config.name, ordinal, epochs=first):
                        yield ordinal, place.offset, place.epoch


@dataclass(frozen=True)
class StepTrace:
    """The rows of a step and the way of every document in them that a raw table holds, by doc_id."""

    blend: str
    offset: int
    rows: list[ExplainedRow]
    documents: dict[str, DocumentTrace]


def served_by(settings: Settings) -> tuple[list[BlendServings], list[str]]:
    """Every blend of the lake that is not retired, and a sentence for each that lost its data."""
    blends = open_blends(settings)
    opened, lost = [], []
    for stored in blends.list():
        try:
            opened.append(BlendServings(blends.open(stored.id)))
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
    return StepTrace(blend, offset, rows, trace_known(Lake(settings), ids, [BlendServings(opened)]))
