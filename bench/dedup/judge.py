"""The documents a deduplication kept, judged by the exact similarities of all pairs of their texts.

A text stays if any document with it stays. Counting texts keeps the pairs of a thousand empty files from
outweighing all others. A pair of similar texts is *resolved* if at most one stays; this recall judges the
outcome, so it also judges tools that name no candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.dedup.exact import Alike
from bench.dedup.graphs import groups
from bench.dedup.rules import judged

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
    """Groups of similar texts without a kept one."""

    @property
    def recall(self) -> float:
        """Share of the similar pairs that keep at most one text."""
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


def lost_families(kept: set[int], similar: Alike, threshold: float) -> list[list[int]]:
    """The groups of similar texts without a kept one, largest first."""
    lost = [members for members in groups(similar.at(threshold).pairs()) if kept.isdisjoint(members)]
    return sorted(lost, key=lambda members: (-len(members), members))


def shown(family: Sequence[int], paths: Sequence[str]) -> str:
    """The path of a family's first member."""
    return f"{paths[family[0]]}; and {len(family) - 1:,} more"
