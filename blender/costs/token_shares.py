"""Weights in tokens: each source's share of a blend's tokens, and the share of padding in its rows.

A weight counts rows, and rows differ in tokens. A packed table's snapshot records the tokens of all its rows,
so the mean per row needs no read. Rows are padded to the longest sequence of the blend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blender.opened.blend import Blend
from blender.rows.snapshot_reader import TOKENS
from blender.spec.mixture import MAX_OFFSET

_STEPS = 64  # steps to average: a share below one row per step shows only now and then


@dataclass(frozen=True)
class TokenShare:
    """A source's part in a blend's tokens; None where its snapshot does not say."""

    source: str
    rows_per_step: float
    """Mean rows of the source in a step."""
    sequence_length: int | None
    """Tokens in a full row."""
    tokens_per_row: float | None
    """Mean tokens in a row."""
    token_share: float | None
    """The source's share of the tokens of all sources."""
    padding: float | None
    """Share of padding in its rows, once padded to the longest of the blend."""


def token_shares(blend: Blend, offset: int | None = None) -> list[TokenShare]:
    """The sources of a blend that deliver tokens, from step `offset` on; without one, by the last piece."""
    first = MAX_OFFSET - _STEPS if offset is None else min(offset, MAX_OFFSET - _STEPS)
    last = min(first + _STEPS, blend.order.mixture.piece_end(first))
    before, after = blend.order.mixture.counts(
        np.array([blend.order.mixture.first_row(step) for step in (first, last)])
    )
    rows = ((after - before) / (last - first)).tolist()
    packed = [it for it, source in enumerate(blend.sources) if TOKENS in source.config.columns]
    facts = {it: blend.sources[it].reader.facts for it in packed}
    lengths = {it: int(of.sequence_length) for it, of in facts.items() if of.sequence_length}
    longest = max(lengths.values(), default=None)
    means = {it: of.n_tokens / blend.sources[it].reader.n_rows for it, of in facts.items() if of.n_tokens}
    known = all(it in means for it in packed if rows[it])
    total = sum(rows[it] * mean for it, mean in means.items())
    return [
        TokenShare(
            source=blend.sources[it].config.name,
            rows_per_step=rows[it],
            sequence_length=lengths.get(it),
            tokens_per_row=means.get(it),
            token_share=rows[it] * means.get(it, 0) / total if known and total else None,
            padding=1 - means[it] / longest if longest and it in means else None,
        )
        for it in packed
    ]


def padding_of(shares: Sequence[TokenShare]) -> float | None:
    """Share of padding in a step; None where it is not known of every source with rows in it."""
    served = [(share.rows_per_step, share.padding) for share in shares if share.rows_per_step]
    known = [rows * padding for rows, padding in served if padding is not None]
    return sum(known) / sum(rows for rows, _ in served) if served and len(known) == len(served) else None
