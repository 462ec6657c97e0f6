"""Between the messages of the protocol and the objects of the core."""

from __future__ import annotations

from typing import Any

from blender.catalog.blends import StoredBlend
from blender.costs.token_shares import TokenShare, padding_of, token_shares
from blender.opened.blend import Blend
from blender.opened.source import OpenSource
from blender.proto.blender.v1 import blender_pb2 as pb
from blender.records import ExplainedRow, Schedule
from blender.spec.config import BlendConfig, BlendSource, blend_source
from blender.spec.mixture import WHOLE, Piece

_DESCRIBED_WEIGHTS = 1 << 17  # what fits a message of the usual 4 MiB, and more than anybody reads


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
        "window_rows": message.window_rows,
        "live": message.live,
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
            window_rows=source.window_rows,
            live=source.live,
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
        schedule=_schedule_to(stored.config),
        pad=stored.config.pad,
    )


def schedule_from(message: Any) -> Schedule | None:
    """The schedule a request asks for, if any."""
    if not message.HasField("schedule"):
        return None
    asked = message.schedule
    knots = tuple((knot.offset, dict(knot.proportions)) for knot in asked.knots)
    return Schedule(asked.rows_per_step, knots, asked.kind)


def _schedule_to(config: BlendConfig) -> Any:
    schedule = config.schedule
    if schedule is None:
        return None
    knots = [
        pb.Knot(
            offset=knot.offset,
            proportions={
                source.name: share / WHOLE
                for source, share in zip(config.sources, knot.shares, strict=True)
                if share
            },
        )
        for knot in schedule.knots
    ]
    return pb.Schedule(kind=schedule.kind, rows_per_step=schedule.rows_per_step, knots=knots)


def description_to(blend: Blend) -> Any:
    """Sources, pieces and length of an open blend."""
    shares = token_shares(blend)
    of_tokens = {one.source: one for one in shares}
    sources = [
        pb.DescribedSource(
            name=source.config.name,
            table=source.config.table,
            snapshot=source.reader.snapshot_id,
            content=source.config.content,
            rows=source.n_rows,
            weight=source.config.weight,
            oversample=source.config.oversample,
            shuffle=source.config.shuffle,
            page_rows=source.config.page_rows,
            window_pages=source.config.window_pages,
            window_rows=source.config.window_rows,
            live=source.config.live,
            columns=source.config.columns,
            steps=end,
            **_tokens(source, of_tokens.get(source.config.name)),
        )
        for source, end in zip(blend.sources, blend.ends, strict=True)
    ]
    pieces = [
        pb.Piece(offset=start, weights=_weights(piece, len(sources)), rows_per_step=piece.rows_per_step)
        for start, piece in _last_pieces(blend)
    ]
    schema = blend.schema.serialize().to_pybytes()
    return pb.DescribeResponse(
        blend=blend.id,
        sources=sources,
        pieces=pieces,
        steps=blend.steps,
        schema=schema,
        pad=blend.config.pad,
        padding=padding_of(shares),
    )


def _tokens(source: OpenSource, share: TokenShare | None) -> dict[str, Any]:
    """What is described of a source that delivers tokens."""
    if share is None:
        return {}
    facts = source.reader.facts
    return {
        "tokenizer": facts.tokenizer,
        "tokenizer_table": facts.tokenizer_table,
        "sequence_length": share.sequence_length,
        "tokens": facts.n_tokens,
        "token_share": share.token_share,
        "padding": share.padding,
    }


def _weights(piece: Piece, n_sources: int) -> list[int]:
    """Zero for the sources that a later piece brought; none for a schedule."""
    return [*piece.weights, *[0] * (n_sources - piece.n_sources)] if piece.weights else []


def _last_pieces(blend: Blend) -> list[tuple[int, Piece]]:
    """As many of the last pieces as a message has room for."""
    mixture = blend.mixture
    shown = max(1, _DESCRIBED_WEIGHTS // mixture.n_sources)
    return mixture.pieces(max(0, len(mixture.starts) - shown))


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
