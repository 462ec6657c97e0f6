"""A dataset of planned steps refuses a wrong rank and a wrong state, and its ranks compare their plans."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from blender.catalog.blends import open_blends
from blender.errors import EndOfData, InvalidRequest
from blender.loading.client import LoadingClient
from blender.loading.costs import Backbone
from blender.loading.embedded import open_loading
from blender.loading.handle import LoadingHandle
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.torch import LoadingDataset
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE, ROOT

END = 300 // 8  # steps that the prose lasts


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    """24 rows of code and 8 of prose in a step."""
    sources = [Source(CODE, 24, oversample=True, shuffle="row"), Source(PROSE, 8)]
    return open_blends(shared_lake).create(sources, seed=7).id


@pytest.fixture(params=["embedded", "served"])
def loading(request: pytest.FixtureRequest, shared_lake: Settings, blend: str) -> Iterator[LoadingHandle]:
    """The loader of a mesh of four ranks."""
    spec = LoadingSpec(blend=blend, mesh=Mesh(dp=4), model=Backbone(16, 2), microbatches=2)
    if request.param == "embedded":
        embedded = open_loading(spec, shared_lake)
        yield embedded
        embedded.close()
        return
    blends = open_blends(shared_lake)
    loader = served_loader(blends.open(blend), spec)
    with (
        BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server,
        LoadingClient(server.address, patience_s=0.5) as client,
    ):
        yield client.open()
    loader.close()


@pytest.mark.parametrize("rank", [7, 4, -1, "3", 1.5])
def test_a_rank_that_the_mesh_lacks_is_refused_when_the_dataset_is_made(
    loading: LoadingHandle, rank: Any
) -> None:
    sentence = rf"Rank {rank!r} was asked for, and the mesh .* has ranks 0 to 3"
    with pytest.raises(InvalidRequest, match=sentence):
        LoadingDataset(loading, rank=rank)
    with pytest.raises(InvalidRequest, match=sentence):
        list(loading.read(StepRange(0, 1), rank))


def test_a_state_behind_the_end_of_the_data_is_refused(loading: LoadingHandle, blend: str) -> None:
    dataset = LoadingDataset(loading, rank=0)
    with pytest.raises(
        InvalidRequest, match=rf"The state is at step 900 of blend {blend}, whose data end after {END} steps"
    ):
        dataset.load_state_dict({"blend": blend, "offset": 900})
    dataset.load_state_dict({"blend": blend, "offset": END - 1})
    assert [step["offset"] for step in dataset] == [END - 1]
    dataset.load_state_dict({"blend": blend, "offset": END})  # a run that has read everything
    assert list(dataset) == []
    with pytest.raises(EndOfData, match=f"ends after {END} steps"):
        list(LoadingDataset(loading, rank=0, offset=900))
    assert list(loading.read(StepRange(END), 0)) == []


def test_a_state_of_a_blend_without_an_end_is_loaded_at_any_step(shared_lake: Settings) -> None:
    endless = open_blends(shared_lake).create([Source(CODE, 8, oversample=True)], seed=7).id
    loading = open_loading(LoadingSpec(blend=endless, mesh=Mesh(), model=Backbone(16, 2)), shared_lake)
    dataset = LoadingDataset(loading, rank=0, stop=10**6 + 1)
    dataset.load_state_dict({"blend": endless, "offset": 10**6})
    assert [step["offset"] for step in dataset] == [10**6]
    loading.close()


def test_a_step_names_its_plan(loading: LoadingHandle) -> None:
    plans = [[step["plan"] for step in LoadingDataset(loading, rank=rank, stop=3)] for rank in range(4)]
    (step,) = loading.read(StepRange(1, 1), 0)
    assert plans == [plans[0]] * 4
    assert plans[0][1] == step.plan
    assert len(set(plans[0])) == 3


RANK = """
import sys, torch.distributed as distributed
from blender.errors import PlanChanged
from blender.loading import require_same_plan
rank = int(sys.argv[2])
distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
LARGEST = 2**64 - 1
require_same_plan({"offset": 7, "plan": LARGEST})
for step in ({"offset": 8, "plan": LARGEST - rank}, {"offset": 8 + rank, "plan": 3}):
    try:
        require_same_plan(step)
    except PlanChanged as error:
        print(error)
"""


@pytest.mark.invariant(
    "The ranks of a run read the buckets of step 0 at every step, and a plan is made in one way: "
    "`run_planner` refuses a strategy that changes its readers or plans a step in two ways, and ranks "
    "compare hashes."
)
@pytest.mark.slow
@pytest.mark.process
def test_every_rank_learns_that_two_have_another_plan(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RANK, str(tmp_path / "meeting")]
    ranks = [
        subprocess.Popen([*command, str(rank)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[0].splitlines() for rank in ranks]
    assert said[0] == said[1]
    plan, offset = said[0]
    assert plan.startswith(
        "Rank 0 reads step 8 under plan ffffffffffffffff, and rank 1 reads step 8 under plan f"
    )
    assert offset.startswith("Rank 0 reads step 8 under plan 0000000000000003, and rank 1 reads step 9 under")
