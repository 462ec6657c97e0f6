"""A tree of one's own decides which ranks share rows, in the planner, embedded, and by constructors."""

from __future__ import annotations

from typing import Any

import pytest

from blender.catalog.blends import open_blends
from blender.errors import InvalidRequest
from blender.loading.costs import Backbone
from blender.loading.planner import open_planner
from blender.loading.spec import LoadingSpec
from blender.loading.tree import ClientPlaceTree, Level
from blender.records import Source
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE


class Halves(ClientPlaceTree):
    """The first half of the dp indexes reads one bucket, the second half the other."""

    def index(self, level: Level, rank: int) -> int:
        dp = self.mesh.coordinate(rank).dp
        return 2 * dp // self.mesh.dp if level == "DP" else super().index(level, rank)


def halves(mesh: Mesh) -> ClientPlaceTree:
    return Halves(mesh)


class OfRanks(ClientPlaceTree):
    """A tree that gives rank 0 a node of its own."""

    def index(self, level: Level, rank: int) -> int:
        return int(rank > 0) if level == "DP" else super().index(level, rank)


def of_ranks(mesh: Mesh) -> ClientPlaceTree:
    return OfRanks(mesh)


def of_another_mesh(mesh: Mesh) -> ClientPlaceTree:
    return ClientPlaceTree(Mesh(dp=mesh.dp + 1))


def a_list(mesh: Mesh) -> list[int]:
    return [mesh.dp]


def a_word(mesh: Mesh) -> ClientPlaceTree:
    class Words(ClientPlaceTree):
        def index(self, level: Level, rank: int) -> Any:
            return f"{level} {rank}" if rank else rank

    return Words(mesh)


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    return open_blends(shared_lake).create([Source(CODE, 16, oversample=True)]).id


def spec_of(blend: str, tree: str, mesh: Mesh = Mesh(dp=4)) -> LoadingSpec:  # noqa: B008 - frozen
    model = Backbone(hidden=16, layers=2)
    return LoadingSpec(blend=blend, mesh=mesh, model=model, microbatches=2, tree=f"{__name__}:{tree}")


def test_ranks_of_a_node_read_the_same_rows(open_handle: Any, shared_lake: Settings, blend: str) -> None:
    spec = spec_of(blend, "halves")
    assert LoadingSpec.from_json(spec.canonical_json()) == spec
    loading, plan = open_handle(spec), open_planner(spec, shared_lake).plan(5)
    assert [(consumer.rank, consumer.bucket) for consumer in plan.consumers] == [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 1),
    ]
    ordinals = [
        step.arrow.column("ordinal").to_pylist()
        for rank in range(4)
        for step in loading.read(StepRange(5, 1), rank)
    ]
    assert ordinals[0] == ordinals[1]
    assert ordinals[2] == ordinals[3]
    assert sorted(ordinals[0] + ordinals[2]) == sorted(plan.step.ordinal.tolist())


@pytest.mark.parametrize("mesh", [Mesh(pp=2, dp=4), Mesh(dp=4, cp=2), Mesh(pp=2, dp=2, cp=2, tp=2)])
def test_ranks_of_one_sample_read_the_same_bucket(
    open_handle: Any, shared_lake: Settings, blend: str, mesh: Mesh
) -> None:
    loading = open_handle(spec_of(blend, "halves", mesh))
    plan = open_planner(spec_of(blend, "halves", mesh), shared_lake).plan(2)
    for consumer in plan.consumers:
        assert consumer.bucket == 2 * mesh.coordinate(consumer.rank).dp // mesh.dp
        (step,) = loading.read(StepRange(2, 1), consumer.rank)
        assert len(step) == 8
    with pytest.raises(InvalidRequest, match=r"The tree has ranks 0 and \d in two nodes at level `DP`"):
        open_planner(spec_of(blend, "of_ranks", mesh), shared_lake)


@pytest.mark.parametrize(
    "tree, sentence",
    [
        ("nonesuch", r"The tree `\S+:nonesuch` cannot be imported \(AttributeError"),
        ("a_list", r"failed on mesh pp=1,dp=4,cp=1,tp=1 \(AttributeError: 'list' object"),
        ("a_word", r"failed on mesh pp=1,dp=4,cp=1,tp=1 \(TypeError"),
        (
            "of_another_mesh",
            "is a ClientPlaceTree of mesh pp=1,dp=5,cp=1,tp=1, and the spec has mesh pp=1,dp=4",
        ),
    ],
)
def test_a_function_that_gives_no_tree_is_refused(
    shared_lake: Settings, blend: str, tree: str, sentence: str
) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        open_planner(spec_of(blend, tree), shared_lake)
