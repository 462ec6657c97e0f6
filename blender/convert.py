"""Between the messages of the protocol and the objects of the core."""

from __future__ import annotations

from typing import Any

from blender.blend import Blend
from blender.blends import StoredBlend
from blender.config import BlendSource, blend_source
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import ExplainedRow


def source_from(message: Any) -> BlendSource:
    """A requested source; what the message leaves out takes its default. Raises InvalidBlend."""
    fields: dict[str, Any] = {
        "table": message.table,
        "name": message.name,
        "weight": message.weight,
        "oversample": message.oversample,
        "content": message.content,
        "page_rows": message.page_rows,
        "window_pages": message.window_pages,
    }
    reference = message.WhichOneof("reference")
    if reference:
        fields[reference] = getattr(message, reference)
    if message.shuffle:
        fields["shuffle"] = message.shuffle
    if message.columns:
        fields["columns"] = tuple(message.columns)
    return blend_source(**fields)


def blend_to(stored: StoredBlend) -> Any:
    """A blend on record, each source with the snapshot it is pinned to."""
    sources = [
        pb.Source(
            table=source.table,
            name=source.name,
            snapshot=snapshot,
            weight=source.weight,
            oversample=source.oversample,
            shuffle=source.shuffle,
            page_rows=source.page_rows,
            window_pages=source.window_pages,
            columns=source.columns,
            content=source.content,
        )
        for source, snapshot in zip(stored.config.sources, stored.pins.snapshots, strict=True)
    ]
    return pb.Blend(
        id=stored.id,
        sources=sources,
        seed=stored.config.seed,
        parent=stored.config.parent,
        offset=stored.config.offset,
        retired=stored.pins.retired,
    )


def description_to(blend: Blend) -> Any:
    """Sources, pieces and length of an open blend."""
    sources = [
        pb.DescribedSource(
            name=source.config.name,
            table=source.config.table,
            snapshot=source.reader.snapshot_id,
            content=source.config.content,
            rows=source.reader.n_rows,
            weight=source.config.weight,
            oversample=source.config.oversample,
            shuffle=source.config.shuffle,
            page_rows=source.config.page_rows,
            window_pages=source.config.window_pages,
            columns=source.config.columns,
            steps=end,
        )
        for source, end in zip(blend.sources, blend.ends, strict=True)
    ]
    mixture = blend.mixture
    pieces = [
        pb.Piece(offset=int(start), weights=piece.weights.tolist(), rows_per_step=piece.rows_per_step)
        for start, piece in zip(mixture.starts, mixture.pieces, strict=True)
    ]
    schema = blend.schema.serialize().to_pybytes()
    return pb.DescribeResponse(
        blend=blend.id, sources=sources, pieces=pieces, steps=blend.steps, schema=schema
    )


def explanation_to(offset: int, rows: list[ExplainedRow]) -> Any:
    """The rows of a step with their documents."""
    return pb.ExplainResponse(
        offset=offset,
        rows=[
            pb.ExplainedRow(
                row=row.row,
                source=row.source,
                table=row.table,
                ordinal=row.ordinal,
                epoch=row.epoch,
                segments=[
                    pb.Segment(doc_id=one.doc_id, doc_offset=one.doc_offset, length=one.length)
                    for one in row.segments
                ],
            )
            for row in rows
        ],
    )
