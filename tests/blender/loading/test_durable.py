"""Planned steps in durable batches: what every rank gets is what its constructor would have made."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from blender.catalog.blends import open_blends
from blender.chunks import Chunking
from blender.errors import InvalidRequest
from blender.global_batches import cut
from blender.global_batches.errors import NamespaceDiffers
from blender.global_batches.format.slices import Slices
from blender.global_batches.namespace import create_namespace
from blender.global_batches.policies import Naive
from blender.global_batches.producer import Producer
from blender.global_batches.reader import BatchReader
from blender.global_batches.torch import BatchDataset
from blender.loading.costs import Backbone, tokens
from blender.loading.durable import PlannedProduction, planned_step
from blender.loading.durable_torch import planned_tensors
from blender.loading.embedded import open_loading
from blender.loading.graph import DGraph
from blender.loading.spec import LoadingSpec
from blender.loading.step import LoadedStep
from blender.loading.torch import LoadingDataset
from blender.opened.blend import Blend
from blender.records import Source
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE

MESH = Mesh(dp=2, cp=2, tp=2)
LANES = 2


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> Blend:
    """24 rows of code and 8 of prose in a step."""
    blends = open_blends(shared_lake)
    sources = [Source(CODE, 24, oversample=True, shuffle="row"), Source(PROSE, 8)]
    return blends.open(blends.create(sources, seed=11).id)


def spec_of(blend: Blend, **fields: Any) -> LoadingSpec:
    defaults = {"mesh": MESH, "model": Backbone(hidden=16, layers=2), "microbatches": 4}
    return LoadingSpec(blend=blend.id, **(defaults | fields))


@pytest.fixture
def productions() -> Iterator[list[PlannedProduction]]:
    """What a test opens, closed at its end."""
    opened: list[PlannedProduction] = []
    yield opened
    for production in opened:
        production.close()


@pytest.mark.invariant(
    "In assigned order the steps of a namespace equal the steps of its source, even if producers die, and"
    " a rank reads the slice that the source itself would give it."
)
@pytest.mark.parametrize("chunking", ["row", "document"])
@pytest.mark.parametrize("mesh", [MESH, Mesh(dp=4)])
def test_a_rank_gets_the_microbatches_of_its_plan(
    tmp_path: Path,
    shared_lake: Settings,
    blend: Blend,
    productions: list[PlannedProduction],
    mesh: Mesh,
    chunking: Chunking,
) -> None:
    spec = spec_of(blend, mesh=mesh, chunking=chunking, broadcast=())
    create_namespace(tmp_path, mesh, lanes=LANES, order="assigned")
    productions += [PlannedProduction(blend, spec) for _ in range(LANES)]
    for lane, production in enumerate(productions):
        Producer(tmp_path, production, [lane], policy=Naive).run()
    reader = BatchReader(str(tmp_path), mesh)
    loading = open_loading(spec, shared_lake)
    for rank in range(mesh.ranks):
        stored = list(BatchDataset(reader, rank=rank, tensors=planned_tensors))
        expected = list(LoadingDataset(loading, rank=rank))
        assert len(stored) == len(expected) == len(list(reader.read(StepRange(), rank))) > 2
        for step, other in zip(stored, expected, strict=True):
            assert step["offset"] == other["offset"]
            assert len(step["microbatches"]) == len(other["microbatches"]) == 4
            for batch, same in zip(step["microbatches"], other["microbatches"], strict=True):
                assert batch.keys() == same.keys()
                assert all(torch.equal(batch[name], same[name]) for name in batch)
    loading.close()
    first = next(reader.read(StepRange(1), 0))
    assert first.origin == {
        "blend": blend.id,
        "offset": 1,
        "spec": spec.id,
        "plan": f"{planned_step(first).plan:016x}",
    }


def test_planned_batches_on_another_mesh_have_a_plan_a_batch(
    tmp_path: Path, blend: Blend, productions: list[PlannedProduction]
) -> None:
    create_namespace(tmp_path, Mesh(dp=2), lanes=1, order="assigned")
    productions.append(PlannedProduction(blend, spec_of(blend, mesh=Mesh(dp=2), broadcast=())))
    Producer(tmp_path, productions[0], policy=Naive).run()
    narrow = BatchReader(str(tmp_path), Mesh(), accumulate=2)
    steps = list(islice(BatchDataset(narrow, rank=0, tensors=planned_tensors), 3))
    assert [(step["offset"], step["substep"]) for step in steps] == [(0, 0), (0, 1), (1, 0)]
    assert steps[0]["plan"] == steps[1]["plan"] != steps[2]["plan"]
    wide = BatchReader(str(tmp_path), Mesh(dp=4), accept_batch_change=True)
    for rank in range(4):
        with pytest.raises(InvalidRequest, match="A step of this mesh is 2 batches, each with a plan"):
            next(iter(BatchDataset(wide, rank=rank, tensors=planned_tensors)))


def test_a_transform_that_differs_each_time_is_kept(
    tmp_path: Path, blend: Blend, productions: list[PlannedProduction]
) -> None:
    made: dict[int, np.ndarray] = {}

    def noise(step: list[LoadedStep]) -> Slices:
        n_rows = sum(map(len, step))
        made[step[0].offset] = np.random.default_rng().random((n_rows, 2))
        return cut({"noise": made[step[0].offset]}, Mesh(dp=2))

    mesh = Mesh(dp=2)
    create_namespace(tmp_path, mesh, lanes=1, order="assigned")
    productions.append(PlannedProduction(blend, spec_of(blend, mesh=mesh), transform=noise))
    Producer(tmp_path, productions[0], policy=Naive).run()
    steps = list(BatchReader(str(tmp_path), mesh).read(StepRange(), 1))
    assert len(steps) == len(made) > 2
    assert all(np.array_equal(step.noise, made[step.offset][16:]) for step in steps)


def by_context(step: Any, tree: Any, spec: LoadingSpec) -> Any:
    """A strategy in which each context parallel rank reads rows of its own."""
    graph = DGraph.of(step, tree, ("n_tokens", "squared_lengths"))
    graph.distribute("CP")
    graph.cost(spec.model, memory=tokens)
    graph.fill(**spec.balancing)
    return graph.plan()


def test_a_plan_that_does_not_fit_the_namespace_is_refused(
    tmp_path: Path, blend: Blend, productions: list[PlannedProduction]
) -> None:
    create_namespace(tmp_path, MESH, lanes=LANES, order="assigned")
    productions.append(PlannedProduction(blend, spec_of(blend, mesh=Mesh(dp=4))))
    with pytest.raises(NamespaceDiffers, match=r"made for dp=2,cp=2, and the mesh is .*dp=4"):
        Producer(tmp_path, productions[0])
    own = f"{__name__}:{by_context.__name__}"
    productions.append(PlannedProduction(blend, spec_of(blend, strategy=own, broadcast=())))
    with pytest.raises(InvalidRequest, match=r"lets rank 2 read piece 0 of bucket 1, .* distributes to `DP`"):
        Producer(tmp_path, productions[1])
    productions.append(PlannedProduction(blend, spec_of(blend)))
    Producer(tmp_path, productions[2], [0])
    productions.append(PlannedProduction(blend, spec_of(blend, microbatches=2)))
    with pytest.raises(NamespaceDiffers, match=r"is filled from .*spec .*, and this producer reads .*spec"):
        Producer(tmp_path, productions[3], [1])
