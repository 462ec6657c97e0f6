"""The places of a trainer's ranks as a tree, and the part of a step that each of them reads.

    tree = ClientPlaceTree(Mesh(dp=2, cp=2, tp=2))
    tree.nodes("DP")                            # ((0, 1, 2, 3), (4, 5, 6, 7)): the ranks of each node
    tree.consumers("DP", [Broadcast("tp")])[1]  # Consumer(rank=2, bucket=0, piece=1, pieces=2, ...)

The levels follow MegaScale-Data, section 4.1: ranks of one data parallel index read the same rows (DP),
ranks of one data and context parallel index too (CP), or each rank reads rows of its own (WORLD).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from blender.errors import InvalidRequest
from blender.spec.mesh import AXES, Axis, Coordinate, Mesh

Level = Literal["DP", "CP", "WORLD"]
LEVELS: tuple[Level, ...] = get_args(Level)
_SIZE = re.compile(r"[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class Broadcast:
    """In the trainer the first of `group_size` neighbors on an axis, or of all, reads for the others.

    Smaller groups read more copies, and fewer ranks wait for each other: selective broadcasting, section 6.2.
    """

    axis: Axis
    group_size: int | None = None

    @classmethod
    def parse(cls, text: str) -> Broadcast:
        """`tp` for all ranks of an axis, `tp/4` for groups of four; raises InvalidRequest."""
        axis, slash, size = str(text).lower().partition("/")
        if axis not in AXES or (slash and not _SIZE.fullmatch(size)):
            raise InvalidRequest(
                f"Unknown broadcast `{text}`. Use an axis of the mesh ({_names(AXES)}), or groups of "
                "neighbors on it: `tp/4`."
            )
        return cls(axis, int(size) if slash else None)

    def first(self, place: Coordinate, extent: int) -> int:
        """The index of the reader on the axis for a rank at `place`."""
        index = place.along(self.axis)
        return index - index % min(self.group_size or extent, extent)


@dataclass(frozen=True)
class Consumer:
    """A rank that reads a bucket, or its piece of each row under context parallelism."""

    rank: int
    bucket: int
    piece: int
    pieces: int
    needs_tokens: bool
    """False for a stage between the first and the last of a pipeline, which needs lengths alone."""


@dataclass(frozen=True)
class ClientPlaceTree:
    """The ranks of a mesh by level. Override `index` for another assignment of ranks to nodes."""

    mesh: Mesh

    def index(self, level: Level, rank: int) -> int:
        """The node of a rank at a level."""
        place = self.mesh.coordinate(rank)
        match level:
            case "DP":
                return place.dp
            case "CP":
                return place.dp * self.mesh.cp + place.cp
            case "WORLD":
                return rank

    def nodes(self, level: Level) -> tuple[tuple[int, ...], ...]:
        """The ranks of each node of a level, ascending; raises InvalidRequest for another level."""
        if level not in self._nodes:
            self._nodes[level] = _nodes(self, level)
        return self._nodes[level]

    def consumers(self, level: Level, broadcasts: Collection[Broadcast] = ()) -> tuple[Consumer, ...]:
        """The ranks that read, ascending; the others get what their reader broadcasts."""
        key = level, tuple(broadcasts)
        if key not in self._consumers:
            self._consumers[key] = _consumers(self, *key)
        return self._consumers[key]

    def reader(self, rank: int, broadcasts: Collection[Broadcast]) -> int:
        """The rank that reads for `rank`; itself without a broadcast."""
        place = self.mesh.coordinate(rank)
        firsts = {
            broadcast.axis: broadcast.first(place, self.mesh.extent(broadcast.axis))
            for broadcast in broadcasts
        }
        return self.mesh.rank(replace(place, **firsts))

    def require_whole_samples(self) -> None:
        """Raise InvalidRequest unless ranks that compute the same sample are in one node.

        Ranks of one data parallel index hold stages and pieces of the same rows (level DP), and with one
        context parallel index, too, the same pieces (level CP).
        """
        axes_of: dict[Level, tuple[Axis, ...]] = {"DP": ("dp",), "CP": ("dp", "cp")}
        for level, axes in axes_of.items():
            first: dict[tuple[int, ...], int] = {}
            for rank in range(self.mesh.ranks):
                place = self.mesh.coordinate(rank)
                peer = first.setdefault(tuple(place.along(axis) for axis in axes), rank)
                if self.index(level, peer) != self.index(level, rank):
                    raise InvalidRequest(
                        f"The tree has ranks {peer} and {rank} in two nodes at level `{level}`, and they "
                        f"compute the same sample: they have one index at {_names(axes)}. Decide on the node "
                        f"by {_names([f'mesh.coordinate(rank).{axis}' for axis in axes])} alone."
                    )

    # A planner asks for the same level at every step. Each tree keeps answers of its own: trees of a class
    # that overrides `index` may be equal by their mesh and assign ranks in different ways.

    @cached_property
    def _nodes(self) -> dict[Level, tuple[tuple[int, ...], ...]]:
        return {}

    @cached_property
    def _consumers(self) -> dict[tuple[Level, tuple[Broadcast, ...]], tuple[Consumer, ...]]:
        return {}


def _nodes(tree: ClientPlaceTree, level: Level) -> tuple[tuple[int, ...], ...]:
    if level not in LEVELS:
        raise InvalidRequest(f"`{level}` is not a level of the mesh. Distribute rows over {_names(LEVELS)}.")
    ranks: dict[int, list[int]] = {}
    for rank in range(tree.mesh.ranks):
        ranks.setdefault(tree.index(level, rank), []).append(rank)
    return tuple(tuple(ranks[node]) for node in sorted(ranks))


def _consumers(
    tree: ClientPlaceTree, level: Level, broadcasts: tuple[Broadcast, ...]
) -> tuple[Consumer, ...]:
    # a reader for context parallel ranks gets whole rows, of which each takes its piece
    cut = level == "DP" and all(
        broadcast.axis != "cp" or broadcast.group_size == 1 for broadcast in broadcasts
    )
    with_tokens: dict[int, bool] = {}
    for rank in range(tree.mesh.ranks):
        reader = tree.reader(rank, broadcasts)
        if tree.index(level, reader) != tree.index(level, rank):
            raise InvalidRequest(
                f"Rank {rank} does not read the rows of rank {reader}, which would broadcast to it: nobody "
                "would read its own. Broadcast at axes whose ranks share a bucket, such as `tp`."
            )
        needs = level == "WORLD" or tree.mesh.coordinate(rank).pp in (0, tree.mesh.pp - 1)
        with_tokens[reader] = with_tokens.get(reader, False) or needs
    bucket_of = {rank: bucket for bucket, ranks in enumerate(tree.nodes(level)) for rank in ranks}
    pieces = tree.mesh.cp if cut else 1
    return tuple(
        Consumer(rank, bucket_of[rank], tree.mesh.coordinate(rank).cp if cut else 0, pieces, tokens)
        for rank, tokens in sorted(with_tokens.items())
    )


def _names(names: Collection[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
