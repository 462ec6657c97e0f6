"""What a deduplication kept of documents, judged by the exact similarities of all pairs of their texts.

Documents of one text are one text: it stays if any of them does. So what is counted are texts, and the
pairs of a thousand empty files do not outweigh all others. A pair of alike texts is *resolved* if
not both stay: this recall looks at the outcome, so it can be asked of a tool that names no candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.dedup.exact import Alike
from bench.keep.graphs import components
from bench.keep.measure import judged

FAR = 0.7  # a removed text whose kept likes are all below this was removed without reason


@dataclass(frozen=True)
class Verdict:
    """The figures of one tool by one measure."""

    tool: str
    measure: str
    kept: int
    removed: int
    unsupported: int
    """Removed texts with no kept one that reaches the threshold."""
    far: int
    """Removed texts with no kept one that reaches `FAR`."""
    alike_kept: int
    pairs: int
    lost: int
    """Groups of alike texts of which nothing is kept."""

    @property
    def recall(self) -> float:
        """Share of the alike pairs of which not both stay."""
        return 1 - self.alike_kept / self.pairs if self.pairs else 1.0

    @property
    def precision(self) -> float:
        """Share of the removed texts that resemble a kept one."""
        return 1 - self.unsupported / self.removed if self.removed else 1.0


def verdict(tool: str, measure: str, kept: set[int], n: int, similar: Alike, threshold: float) -> Verdict:
    """The figures of a tool that kept `kept` of n texts; `similar` has all pairs from `FAR` on."""
    truth = similar.at(threshold).pairs()
    found = judged(tool, kept, n, truth)
    far = judged(tool, kept, n, similar.at(FAR).pairs())
    return Verdict(
        tool,
        measure,
        len(kept),
        n - len(kept),
        found.unsupported,
        far.unsupported,
        found.alike,
        len(truth),
        found.lost,
    )


def kept_texts(text_of: np.ndarray, kept: np.ndarray) -> set[int]:
    """The texts of which a document stays; text_of[i] is the text of document i, kept[i] whether it stays."""
    return {int(text) for text in np.unique(text_of[kept])}


def lost_families(kept: set[int], n: int, similar: Alike, threshold: float) -> list[list[int]]:
    """The groups of alike texts of which nothing stays, the largest first."""
    groups = components(n, similar.at(threshold).pairs())
    lost = [members for members in groups if len(members) > 1 and not kept & set(members)]
    return sorted(lost, key=lambda members: (-len(members), members))


def shown(family: Sequence[int], paths: Sequence[str], most: int = 3) -> str:
    """A family by the paths of its first members."""
    names = [paths[it] for it in family[:most]]
    more = len(family) - len(names)
    return "; ".join(names) + (f"; and {more:,} more" if more > 0 else "")
