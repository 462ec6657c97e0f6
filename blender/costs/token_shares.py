"""What weights mean in tokens: each source's share of them, and how much of its rows is padding.

A weight is rows, and rows hold as many tokens as their documents gave them. A packed table's snapshot says
how many tokens its rows hold together, so the mean of a row costs nothing to know; rows are padded to the
longest sequence of the blend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blender.opened.blend import Blend
from blender.rows.sources import TOKENS
from blender.spec.mixture import MAX_OFFSET

_STEPS = 64  # a share below a row a step comes only now and then


@dataclass(frozen=True)
class TokenShare:
    """A source's part in a blend's tokens; what depends on what nobody said is None."""

    source: str
    rows_per_step: float
    """Rows of the source in a step, on average."""
    sequence_length: int | None
    """Tokens that a full row holds."""
    tokens_per_row: float | None
    """Tokens that a row holds, on average."""
    token_share: float | None
    """The source's tokens among those of all sources."""
    padding: float | None
    """Share of its rows that is padding, once they are as long as the longest of the blend."""


def token_shares(blend: Blend, offset: int | None = None) -> list[TokenShare]:
    """The sources of a blend that deliver tokens, from step `offset` on; as it ends without one."""
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
    served = [(one.rows_per_step, one.padding) for one in shares if one.rows_per_step]
    known = [rows * padding for rows, padding in served if padding is not None]
    return sum(known) / sum(rows for rows, _ in served) if served and len(known) == len(served) else None
