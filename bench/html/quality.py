"""How near an extracted text is to the truth: its words, and their order."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"\w+")
Shingle = tuple[str, ...]


@dataclass
class Overlap:
    """Counts of four-word shingles: common ones, those of the extracted text, and those of the truth."""

    common: int = 0
    of_text: int = 0
    of_truth: int = 0

    def add(self, text: str, truth: str) -> float:
        """Add a page, and return its F."""
        ours, theirs = Counter(shingles(text)), Counter(shingles(truth))
        common = (ours & theirs).total()
        self.common += common
        self.of_text += ours.total()
        self.of_truth += theirs.total()
        both = ours.total() + theirs.total()
        return 2 * common / both if both else 1.0

    @property
    def precision(self) -> float:
        return self.common / max(1, self.of_text)

    @property
    def recall(self) -> float:
        return self.common / max(1, self.of_truth)

    @property
    def f(self) -> float:
        return 2 * self.common / max(1, self.of_text + self.of_truth)


def shingles(text: str) -> list[Shingle]:
    """Return every run of four words."""
    words = _WORD.findall(text)
    return list(zip(words, words[1:], words[2:], words[3:], strict=False))


def order(text: str, truth: str) -> tuple[int, int]:
    """Return the longest run of shingles that rise in both, and their number, of those that each has once."""
    places = _once(shingles(truth))
    rising = [places[shingle] for shingle in _once(shingles(text)) if shingle in places]
    return longest_increasing(rising), len(rising)


def _once(runs: Sequence[Shingle]) -> dict[Shingle, int]:
    counts = Counter(runs)
    return {shingle: place for place, shingle in enumerate(runs) if counts[shingle] == 1}


def longest_increasing(numbers: Sequence[int]) -> int:
    """Return the length of the longest increasing subsequence."""
    ends: list[int] = []
    for number in numbers:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(ends)
