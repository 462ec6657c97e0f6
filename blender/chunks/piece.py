"""The part of every row that one context parallel rank computes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from blender.errors import InvalidRequest

Chunking = Literal["row", "document"]

CHUNK = "factory.chunk"  # field metadata: the piece of the rows in a record batch, such as `row:1/4`


@dataclass(frozen=True)
class Piece:
    """Rank `rank` of `of`. Raises InvalidRequest."""

    rank: int = 0
    of: int = 1
    chunking: Chunking = "row"
    """What the ranks divide: whole rows, or each document."""

    def __post_init__(self) -> None:
        if self.chunking not in get_args(Chunking):
            raise InvalidRequest(f"Unknown chunking `{self.chunking}`. Use `row` or `document`.")
        if not 0 <= self.rank < self.of:
            raise InvalidRequest(
                f"There is no context parallel rank {self.rank} of {self.of}. "
                f"Ranks count from 0 to one less than their number."
            )

    def __str__(self) -> str:
        return f"{self.chunking}:{self.rank}/{self.of}"

    @classmethod
    def from_text(cls, text: str) -> Piece:
        """The inverse of `str`."""
        match = re.fullmatch(r"(\w+):(\d+)/(\d+)", text)
        if match is None:
            raise InvalidRequest(f"`{text}` is not a piece of rows. Write it like `row:1/4`.")
        chunking, rank, of = match.groups()
        return cls(int(rank), int(of), chunking)  # type: ignore[arg-type]  # checked above

    @property
    def n_parts(self) -> int:
        """The number of equal parts: two a rank, and one for a single rank."""
        return 2 * self.of if self.of > 1 else 1

    @property
    def parts(self) -> tuple[int, ...]:
        """The parts of this rank, in order."""
        return (self.rank, self.n_parts - 1 - self.rank) if self.of > 1 else (0,)
