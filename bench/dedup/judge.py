"""The documents a deduplication kept, judged by the exact similarities of all pairs of their texts.

A text stays if any document with it stays. Counting texts keeps the pairs of a thousand empty files from
outweighing all others. A pair of similar texts is *resolved* if at most one stays; this recall judges the
outcome, so it also judges tools that name no candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.dedup.exact import Alike
from bench.keep.graphs import components
from bench.keep.measure import judged

FAR = 0.7  # a removed text that resembles every kept one less than this was removed without reason


@dataclass(frozen=True)
class Verdict:
    """The figures of one tool by one measure."""

    tool: str
    measure: str
    kept: int
    removed: int
    unsupported: int
    """Removed texts that resemble no kept one by the threshold."""
    far: int
    """Removed texts that resemble no kept one by `FAR`."""
    alike_kept: int
    pairs: int
    lost: int
    """Groups of similar texts of which nothing is kept."""

    @property
    def recall(self) -> float:
        """Share of the similar pairs of which at most one stays."""
        return 1 - self.alike_kept / self.pairs if self.pairs else 1.0

    @property
    def precision(self) -> float:
        """Share of the removed texts that resemble a kept one."""
        return 1 - self.unsupported / self.removed if self.removed else 1.0


def verdict(tool: str, measure: str, kept: set[int], n: int, similar: Alike, threshold: float) -> Verdict:
    """The figures of a tool that kept `kept` of n texts; `similar` holds all pairs of at least `FAR`."""
    truth = similar.at(threshold).pairs()
    found = judged(tool, kept, n, truth)
    far = judged(tool, kept, n, similar.at(FAR).pairs())
    outcome = found.unsupported, far.unsupported, found.alike, len(truth), found.lost
    return Verdict(tool, measure, len(kept), n - len(kept), *outcome)


def kept_texts(text_of: np.ndarray, kept: np.ndarray) -> set[int]:
    """The texts with a kept document; text_of[i] is the text of document i, kept[i] whether it stays."""
    return {int(text) for text in np.unique(text_of[kept])}


def lost_families(kept: set[int], n: int, similar: Alike, threshold: float) -> list[list[int]]:
    """The groups of similar texts of which nothing stays, largest first."""
    groups = components(n, similar.at(threshold).pairs())
    lost = [members for members in groups if len(members) > 1 and not kept & set(members)]
    return sorted(lost, key=lambda members: (-len(members), members))


def shown(family: Sequence[int], paths: Sequence[str], most: int = 3) -> str:
    """The paths of a family's first members."""
    names = [paths[it] for it in family[:most]]
    more = len(family) - len(names)
    return "; ".join(names) + (f"; and {more:,} more" if more > 0 else "")
