"""The part of every step that one reader takes."""

from __future__ import annotations

from dataclasses import dataclass

from blender.errors import InvalidRequest


@dataclass(frozen=True)
class RankSlice:
    """Slice `rank` of `ranks` equal slices of a step: rows [rank w/ranks, (rank + 1) w/ranks) of w rows.

    Raises InvalidRequest for a rank outside 0 .. ranks - 1.
    """

    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if self.ranks < 1 or not 0 <= self.rank < self.ranks:
            raise InvalidRequest(
                f"Rank {self.rank} of {self.ranks} was asked for. Ranks run from 0 to ranks - 1."
            )

    def rows_of(self, width: int) -> range:
        """Its rows in a step of `width` rows, which `ranks` divides."""
        share = width // self.ranks
        return range(self.rank * share, (self.rank + 1) * share)


WHOLE_STEP = RankSlice()
