"""Blends as plain records: stored ones, and descriptions of open ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blender.catalog.blends import StoredBlend
from blender.costs.token_shares import TokenShare, padding_of, token_shares
from blender.opened.blend import Blend
from blender.opened.source import OpenedSource
from blender.records import BlendRecord, DescribedPiece, DescribedSource, Description, Schedule
from blender.spec.config import BlendConfig
from blender.spec.mixture import WHOLE, MixturePiece

_DESCRIBED_WEIGHTS = 1 << 17  # fits a message of gRPC's usual 4 MiB


def blend_record(stored: StoredBlend) -> BlendRecord:
    """A stored blend, each source with the snapshot it is pinned to."""
    pinned = zip(stored.config.sources, stored.pins.snapshots, strict=True)
    return BlendRecord(
        id=stored.id,
        sources=tuple(replace(source, snapshot=snapshot) for source, snapshot in pinned),
        seed=stored.config.seed,
        parent=stored.config.parent,
        offset=stored.config.offset,
        retired=stored.pins.retired,
        schedule=_schedule(stored.config),
        pad=stored.config.pad,
    )


def description(blend: Blend) -> Description:
    """Sources, pieces and length of an open blend."""
    shares = token_shares(blend)
    share_of = {share.source: share for share in shares}
    return Description(
        blend=blend.id,
        sources=tuple(
            DescribedSource(
                source=replace(source.config, snapshot=source.reader.snapshot_id),
                rows=source.n_rows,
                steps=end,
                **_tokens(source, share_of.get(source.config.name)),
            )
            for source, end in zip(blend.sources, blend.order.ends, strict=True)
        ),
        pieces=tuple(
            DescribedPiece(start, _weights(piece, len(blend.sources)), piece.rows_per_step)
            for start, piece in _last_pieces(blend)
        ),
        steps=blend.steps,
        pad=blend.config.pad,
        padding=padding_of(shares),
    )


def _schedule(config: BlendConfig) -> Schedule | None:
    schedule = config.schedule
    if schedule is None:
        return None
    names = [source.name for source in config.sources]
    knots = tuple(
        (knot.offset, {name: share / WHOLE for name, share in zip(names, knot.shares, strict=True) if share})
        for knot in schedule.knots
    )
    return Schedule(schedule.rows_per_step, knots, schedule.kind)


def _tokens(source: OpenedSource, share: TokenShare | None) -> dict[str, Any]:
    """The fields that describe a source of tokens."""
    if share is None:
        return {}
    facts = source.reader.facts
    return {
        "tokenizer": facts.tokenizer,
        "tokenizer_table": facts.tokenizer_table,
        "vocabulary": facts.vocabulary,
        "sequence_length": share.sequence_length,
        "tokens": facts.n_tokens,
        "token_share": share.token_share,
        "padding": share.padding,
    }


def _weights(piece: MixturePiece, n_sources: int) -> tuple[int, ...]:
    """Weights with zeros for sources that a later piece added; empty for a schedule."""
    return (*piece.weights, *[0] * (n_sources - piece.n_sources)) if piece.weights else ()


def _last_pieces(blend: Blend) -> list[tuple[int, MixturePiece]]:
    """The last pieces, as many as fit a message."""
    mixture = blend.order.mixture
    n_shown = max(1, _DESCRIBED_WEIGHTS // mixture.n_sources)
    return mixture.pieces(max(0, len(mixture.starts) - n_shown))
