"""Levels of a mesh: which ranks read together, and which read for others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.loading.tree import Broadcast, ClientPlaceTree, Consumer, Level
from blender.spec.mesh import AXES, Axis, Mesh

TREE = ClientPlaceTree(Mesh(dp=2, cp=2, tp=2))  # Figure 8 of the paper


def test_the_levels_of_figure_8() -> None:
    assert TREE.nodes("DP") == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert TREE.nodes("CP") == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert TREE.nodes("WORLD") == tuple((rank,) for rank in range(8))


@pytest.mark.parametrize("order", ["-".join(axes) for axes in permutations(AXES)])
@pytest.mark.parametrize("level", ["DP", "CP", "WORLD"])
def test_every_rank_is_in_one_node_with_the_ranks_that_share_its_indexes(order: str, level: Level) -> None:
    mesh = Mesh(pp=2, dp=3, cp=2, tp=2, order=order)
    nodes = ClientPlaceTree(mesh).nodes(level)
    assert sorted(rank for node in nodes for rank in node) == list(range(mesh.ranks))
    for number, node in enumerate(nodes):
        for rank in node:
            place = mesh.coordinate(rank)
            assert number == {"DP": place.dp, "CP": place.dp * 2 + place.cp, "WORLD": rank}[level]


def test_a_rank_reads_a_piece_of_the_context_and_the_first_of_an_axis_for_the_others() -> None:
    readers = TREE.consumers("DP", [Broadcast("tp")])
    assert [(reader.rank, reader.bucket, reader.piece, reader.pieces) for reader in readers] == [
        (0, 0, 0, 2),
        (2, 0, 1, 2),
        (4, 1, 0, 2),
        (6, 1, 1, 2),
    ]
    for_all = TREE.consumers("DP", [Broadcast("tp"), Broadcast("cp")])
    assert [(reader.rank, reader.pieces) for reader in for_all] == [
        (0, 1),
        (4, 1),
    ]  # whole rows for both pieces
    assert TREE.consumers("CP")[1] == Consumer(rank=1, bucket=0, piece=0, pieces=1, needs_tokens=True)


def test_stages_between_the_first_and_the_last_get_no_tokens() -> None:
    consumers = ClientPlaceTree(Mesh(pp=4)).consumers("DP")
    assert [consumer.needs_tokens for consumer in consumers] == [True, False, False, True]
    pairs = ClientPlaceTree(Mesh(pp=6)).consumers("DP", [Broadcast("pp", 2)])
    assert [(pair.rank, pair.needs_tokens) for pair in pairs] == [(0, True), (2, False), (4, True)]


EXTENTS = st.fixed_dictionaries({axis: st.integers(1, 4) for axis in AXES})
BROADCASTS = st.builds(Broadcast, st.sampled_from(("pp", "cp", "tp")), st.none() | st.integers(1, 6))


@given(
    mesh=EXTENTS.map(lambda extents: Mesh(**extents)),
    broadcasts=st.lists(BROADCASTS, max_size=3, unique_by=lambda one: one.axis),
)
def test_each_rank_has_one_reader_which_reads_for_itself(mesh: Mesh, broadcasts: list[Broadcast]) -> None:
    tree = ClientPlaceTree(mesh)
    readers = {tree.reader(rank, broadcasts) for rank in range(mesh.ranks)}
    assert readers == {consumer.rank for consumer in tree.consumers("DP", broadcasts)}
    assert all(tree.reader(reader, broadcasts) == reader for reader in readers)
    sizes = {broadcast.axis: broadcast.group_size for broadcast in broadcasts}
    groups = [-(-mesh.extent(axis) // (size or mesh.extent(axis))) for axis, size in sizes.items()]
    whole = [mesh.extent(axis) for axis in AXES if axis not in sizes]
    assert len(readers) == prod(groups + whole)


@pytest.mark.parametrize("text", ["", "ep", "tp/", "tp/0", "tp/x", "tp/-2"])
def test_another_broadcast_is_refused(text: str) -> None:
    assert Broadcast.parse("CP/4") == Broadcast("cp", 4)
    with pytest.raises(InvalidRequest, match=f"Unknown broadcast `{text}`"):
        Broadcast.parse(text)


def test_a_tree_may_assign_ranks_in_another_way() -> None:
    @dataclass(frozen=True)
    class Halves(ClientPlaceTree):
        def index(self, level: Level, rank: int) -> int:
            return rank % (2 if level == "DP" else self.mesh.ranks)

    assert Halves(Mesh(dp=4)).nodes("DP") == ((0, 2), (1, 3))


def test_trees_of_one_class_and_mesh_have_nodes_of_their_own() -> None:
    class Dealt(ClientPlaceTree):
        def __init__(self, mesh: Mesh, n_nodes: int) -> None:
            super().__init__(mesh)
            object.__setattr__(self, "n_nodes", n_nodes)

        def index(self, level: Level, rank: int) -> int:
            return int(rank % self.n_nodes) if level == "DP" else rank  # type: ignore[attr-defined]

    two, four = Dealt(Mesh(dp=4), 2), Dealt(Mesh(dp=4), 4)
    assert two == four
    assert two.nodes("DP") == ((0, 2), (1, 3))
    assert four.nodes("DP") == ((0,), (1,), (2,), (3,))
    assert [consumer.bucket for consumer in two.consumers("DP")] == [0, 1, 0, 1]
    assert [consumer.bucket for consumer in four.consumers("DP")] == [0, 1, 2, 3]
    assert two.consumers("DP") is two.consumers("DP")


def test_another_level_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"`TP` is not a level of the mesh. Distribute rows over `DP`"):
        TREE.nodes("TP")  # type: ignore[arg-type]


@pytest.mark.parametrize("level, axis", [("DP", "dp"), ("CP", "cp"), ("WORLD", "tp")])
def test_a_broadcast_to_ranks_of_another_bucket_is_refused(level: Level, axis: Axis) -> None:
    with pytest.raises(InvalidRequest, match="nobody would read its own"):
        TREE.consumers(level, [Broadcast(axis)])
    assert TREE.consumers(level, [Broadcast(axis, 1)]) == TREE.consumers(level)
