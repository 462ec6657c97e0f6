"""Pictures that strategy `vlm` spreads over all ranks arrive once, where both ends of the all-to-all say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blender.catalog.blends import open_blends
from blender.loading.costs import Backbone, Encoder
from blender.loading.image_input import ImageInput
from blender.loading.planner import open_planner
from blender.loading.spec import LoadingSpec
from blender.records import Source
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.picture_tables import PICTURES, documents, write_pictures


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home: Path = tmp_path_factory.mktemp("lake")
    lake = Settings(home=home, cache=home / "cache")
    write_pictures(lake, documents(24))
    return lake


@pytest.mark.parametrize("level", ["intra", "interleaved"])
def test_both_ends_of_the_all_to_all_agree_on_every_picture(
    open_handle: Any, shared_lake: Settings, level: str
) -> None:
    source = Source(PICTURES, 8, columns=("tokens", "images"), oversample=True)
    spec = LoadingSpec(
        blend=open_blends(shared_lake).create([source], seed=2, pad=True).id,
        mesh=Mesh(dp=2, cp=2),
        model=Backbone(hidden=16, layers=2),
        microbatches=2,
        strategy="vlm",
        encoder=Encoder(hidden=16, layers=2),
        encoder_level=level,
        images=ImageInput(patch=4, merge=2, most_patches=64),
    )
    loading, planner = open_handle(spec), open_planner(spec, shared_lake)
    steps = [list(loading.read(StepRange(0, 2), rank)) for rank in range(4)]
    for offset in (0, 1):
        plan = planner.plan(offset)
        assert plan.images is not None
        at_encoder, at_backbone = [], {}
        for rank in range(4):
            step = steps[rank][offset]
            assert step.plan == plan.hash
            for bin, images in enumerate(step.images):
                for index in range(len(images)):
                    ends = (int(images.node[index]), bin, index)
                    assert ends[0] == rank
                    to = {name: int(values[index]) for name, values in images.to.items()}
                    at_encoder.append((*ends, to["bucket"], to["microbatch"], to["row"], to["position"]))
        for bucket in range(2):
            for microbatch, places in enumerate(steps[2 * bucket][offset].placeholders):
                for place in range(len(places["node"])):
                    ends = tuple(int(places[name][place]) for name in ("node", "bin", "index"))
                    row, position = (int(places[name][place]) for name in ("row", "position"))
                    at_backbone[ends] = (bucket, microbatch, row, position)
        assert len(at_encoder) == len(plan.images.node) == len(at_backbone)
        assert {place[:3]: place[3:] for place in at_encoder} == at_backbone
