"""Between the messages of the protocol and the plain records of a client."""

from __future__ import annotations

from typing import Any

from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import (
    BlendRecord,
    DescribedPiece,
    DescribedSource,
    Description,
    ExplainedRow,
    Schedule,
    Segment,
    Source,
)


def source_to(source: Source) -> Any:
    """A source to ask for."""
    return pb.Source(
        table=source.table,
        name=source.name,
        snapshot=source.snapshot,
        branch=source.branch,
        tag=source.tag,
        weight=source.weight,
        oversample=source.oversample,
        shuffle=source.shuffle,
        page_rows=source.page_rows,
        window_pages=source.window_pages,
        window_rows=source.window_rows,
        live=source.live,
        columns=source.columns,
        content=source.content,
    )


def record_of(answer: Any) -> BlendRecord:
    """A blend on record."""
    sources = tuple(
        Source(
            table=one.table,
            weight=one.weight,
            name=one.name,
            oversample=one.oversample,
            shuffle=one.shuffle,
            page_rows=one.page_rows,
            window_pages=one.window_pages,
            window_rows=one.window_rows,
            live=one.live,
            columns=tuple(one.columns),
            snapshot=one.snapshot,
            content=one.content,
        )
        for one in answer.sources
    )
    return BlendRecord(
        id=answer.id,
        sources=sources,
        seed=answer.seed,
        parent=answer.parent,
        offset=answer.offset,
        retired=answer.retired,
        schedule=_schedule_of(answer.schedule) if answer.HasField("schedule") else None,
        pad=answer.pad,
    )


def schedule_to(schedule: Schedule | None) -> Any:
    """A schedule to ask for."""
    if schedule is None:
        return None
    knots = [pb.Knot(offset=offset, proportions=proportions) for offset, proportions in schedule.knots]
    return pb.Schedule(kind=schedule.kind, rows_per_step=schedule.rows_per_step, knots=knots)


def _schedule_of(answer: Any) -> Schedule:
    knots = tuple((knot.offset, dict(knot.proportions)) for knot in answer.knots)
    return Schedule(answer.rows_per_step, knots, answer.kind)


def description_of(answer: Any) -> Description:
    """An open blend."""
    return Description(
        blend=answer.blend,
        sources=tuple(_described(one) for one in answer.sources),
        pieces=tuple(
            DescribedPiece(one.offset, tuple(one.weights), one.rows_per_step) for one in answer.pieces
        ),
        steps=_given(answer, "steps"),
        pad=answer.pad,
        padding=_given(answer, "padding"),
    )


def explanation_of(answer: Any) -> tuple[ExplainedRow, ...]:
    """The rows of a step."""
    return tuple(
        ExplainedRow(
            row=row.row,
            source=row.source,
            table=row.table,
            ordinal=row.ordinal,
            epoch=row.epoch,
            segments=tuple(Segment(one.doc_id, one.doc_offset, one.length) for one in row.segments),
        )
        for row in answer.rows
    )


def _described(one: Any) -> DescribedSource:
    return DescribedSource(
        name=one.name,
        table=one.table,
        snapshot=one.snapshot,
        content=one.content,
        rows=one.rows,
        weight=one.weight,
        oversample=one.oversample,
        shuffle=one.shuffle,
        page_rows=one.page_rows,
        window_pages=one.window_pages,
        window_rows=one.window_rows,
        live=one.live,
        columns=tuple(one.columns),
        steps=_given(one, "steps"),
        tokenizer=_given(one, "tokenizer"),
        tokenizer_table=_given(one, "tokenizer_table"),
        sequence_length=_given(one, "sequence_length"),
        tokens=_given(one, "tokens"),
        token_share=_given(one, "token_share"),
        padding=_given(one, "padding"),
    )


def _given(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None
