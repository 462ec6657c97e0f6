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
    """The first half of the ranks reads one bucket, the second half the other."""

    def index(self, level: Level, rank: int) -> int:
        return 2 * rank // self.mesh.ranks if level == "DP" else super().index(level, rank)


def halves(mesh: Mesh) -> ClientPlaceTree:
    return Halves(mesh)


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


def spec_of(blend: str, tree: str) -> LoadingSpec:
    model = Backbone(hidden=16, layers=2)
    return LoadingSpec(blend=blend, mesh=Mesh(dp=4), model=model, microbatches=2, tree=f"{__name__}:{tree}")


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
