"""The ranks of a training run as a mesh of four axes, and the place of each rank in it.

    Mesh.parse("dp=2,cp=2").ranks                   # 4
    Mesh(dp=2, cp=2).coordinate(3)                  # Coordinate(pp=0, dp=1, cp=1, tp=0)
    Mesh(dp=2, cp=2, order="dp-cp-tp-pp").rank(Coordinate(dp=1))    # 1

An order names the axes by the distance of neighbors: first the axis with consecutive ranks, last the axis
with the ranks farthest apart. The default is Megatron's. Expert parallelism is inside these axes: its ranks
read the same data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from blender.errors import InvalidRequest
from blender.spec.whole_number import as_integer, whole_number

Axis = Literal["pp", "dp", "cp", "tp"]

AXES: tuple[Axis, ...] = get_args(Axis)
MEGATRON_ORDER = "tp-cp-dp-pp"
MOST_RANKS = 1 << 20  # ten times those of the largest runs; each rank is an object
_EXTENT = re.compile(r"\s*(\w+)\s*=\s*(\d{1,9})\s*")


@dataclass(frozen=True)
class Coordinate:
    """The place of a rank: its pipeline stage, and its data, context and tensor parallel index."""

    pp: int = 0
    dp: int = 0
    cp: int = 0
    tp: int = 0

    def along(self, axis: Axis) -> int:
        """Its index on one axis."""
        return int(getattr(self, axis))


@dataclass(frozen=True)
class Mesh:
    """The extents of the pipeline, data, context and tensor parallel axes.

    Raises InvalidRequest for an extent that is not a whole number from 1 on, for more than MOST_RANKS ranks,
    and for an order that does not name each axis once.
    """

    pp: int = 1
    dp: int = 1
    cp: int = 1
    tp: int = 1
    order: str = MEGATRON_ORDER

    def __post_init__(self) -> None:
        for axis in AXES:
            object.__setattr__(self, axis, whole_number(getattr(self, axis), axis, least=1))
        if self.ranks > MOST_RANKS:
            raise InvalidRequest(
                f"The mesh {self} has {self.ranks:,} ranks. Use extents whose product is at most "
                f"{MOST_RANKS:,}."
            )
        if not isinstance(self.order, str) or sorted(self.order.split("-")) != sorted(AXES):
            raise InvalidRequest(
                f"`{self.order}` is not an order of a mesh. Name each of {', '.join(AXES)} once, beginning "
                f"with the axis whose neighbors have consecutive ranks, as in `{MEGATRON_ORDER}`."
            )

    @classmethod
    def parse(cls, text: str, order: str = MEGATRON_ORDER) -> Mesh:
        """The mesh that `text` describes, such as `dp=2,cp=2`; axes that it leaves out have extent 1.

        Raises InvalidRequest for any other text.
        """
        extents: dict[str, int] = {}
        for part in text.split(","):
            match = _EXTENT.fullmatch(part)
            axis = match[1] if match else ""
            if match is None or axis not in AXES or axis in extents:
                raise InvalidRequest(
                    f"`{part.strip()}` in the mesh `{text}` is not the extent of an axis. Name "
                    f"{', '.join(AXES)}, each at most once, as in `dp=2,cp=2`."
                )
            extents[axis] = int(match[2])
        return cls(**extents, order=order)

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return prod(self.extent(axis) for axis in AXES)

    def extent(self, axis: Axis) -> int:
        """The number of indexes on one axis."""
        return int(getattr(self, axis))

    def coordinate(self, rank: int) -> Coordinate:
        """The place of a rank; raises InvalidRequest unless it is among the mesh's."""
        number = as_integer(rank)
        if number is None or not 0 <= number < self.ranks:
            raise InvalidRequest(
                f"Rank {rank!r} was asked for, and the mesh {self} has ranks 0 to {self.ranks - 1}. Start as "
                "many ranks as the mesh has, or use a mesh of theirs."
            )
        indexes: dict[str, int] = {}
        for axis in self._axes():
            number, indexes[axis] = divmod(number, self.extent(axis))
        return Coordinate(**indexes)

    def rank(self, coordinate: Coordinate) -> int:
        """The rank at a place; raises InvalidRequest unless the mesh has it."""
        rank = 0
        for axis in reversed(self._axes()):
            index = coordinate.along(axis)
            if not 0 <= index < self.extent(axis):
                raise InvalidRequest(f"The mesh {self} has no place {coordinate}: `{axis}` is outside it.")
            rank = rank * self.extent(axis) + index
        return rank

    def __str__(self) -> str:
        return ",".join(f"{axis}={self.extent(axis)}" for axis in AXES)

    def _axes(self) -> tuple[Axis, ...]:
        return tuple(self.order.split("-"))  # type: ignore[arg-type]
