"""Plans of one's own: from the summary of a step to a checked plan, embedded and from a constructor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blender.arrays import as_numpy
from blender.catalog.blends import open_blends
from blender.errors import EndOfData, InvalidRequest
from blender.loading import buffer_summary
from blender.loading.buffer_summary import BufferSummary
from blender.loading.columns import StepColumns
from blender.loading.costs import Backbone, Encoder
from blender.loading.image_input import ImageInput
from blender.loading.plan import Plan
from blender.loading.planner import Planner, open_planner
from blender.loading.raw_plans import raw_plan
from blender.loading.service import loading_service, served_loader
from blender.loading.spec import LoadingSpec
from blender.loading.tree import ClientPlaceTree
from blender.records import Source
from blender.serving.server import BlenderServer
from blender.serving.service import blend_services
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.settings import Settings
from tests.blender.lakes import ROOT
from tests.blender.picture_tables import PICTURES, documents, write_pictures

ROWS = 8


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home: Path = tmp_path_factory.mktemp("lake")
    lake = Settings(home=home, cache=home / "cache")
    write_pictures(lake, documents(24))
    return lake


@pytest.fixture(scope="module")
def blend(shared_lake: Settings) -> str:
    source = Source(PICTURES, ROWS, columns=("tokens", "images"), oversample=True)
    return open_blends(shared_lake).create([source], seed=2, pad=True).id


def spec_of(blend: str, **changes: Any) -> LoadingSpec:
    fields = {
        "mesh": Mesh(dp=2, cp=2),
        "model": Backbone(hidden=16, layers=2),
        "microbatches": 2,
        "strategy": "vlm",
        "encoder": Encoder(hidden=16, layers=2),
        "images": ImageInput(patch=4, merge=2, most_patches=64),
    }
    return LoadingSpec(blend=blend, **fields | changes)


@pytest.fixture
def planner(blend: str, shared_lake: Settings) -> Planner:
    return open_planner(spec_of(blend), shared_lake)


def by_halves(summary: BufferSummary) -> tuple[Any, Any]:
    """Rows by their lengths: the longest half to bucket 0."""
    lengths = as_numpy(summary.rows.column("n_tokens"))
    place = np.argsort(np.argsort(-lengths, kind="stable"), kind="stable")
    return place // (ROWS // 2), place % 2


def test_a_plan_made_of_the_summary_is_the_same_at_both_doors(
    open_handle: Any, blend: str, planner: Planner
) -> None:
    loading = open_handle(spec_of(blend))
    summary = loading.summary_buffer(3)
    assert summary == planner.summary_buffer(3).summary()
    assert summary.pictures is not None
    bucket, bin = by_halves(summary)
    own = {"node": [0] * len(summary.pictures), "node_bin": [1] * len(summary.pictures)}
    for options in ({}, {"encoder_level": "interleaved"}, own):
        plan = planner.plan_raw(3, bucket, bin, **options)
        assert loading.plan_raw(3, bucket, bin, **options) == plan.described()
        assert plan.images is not None
        assert plan.images.nodes == 4
    assert plan.images.loads[0, 1] == plan.images.loads.sum()


def test_pictures_without_places_get_those_of_strategy_vlm(
    blend: str, shared_lake: Settings, planner: Planner
) -> None:
    for level in ("intra", "inter", "interleaved"):
        plan = open_planner(spec_of(blend, encoder_level=level), shared_lake).plan(5)
        assert plan.images is not None
        raw = planner.plan_raw(5, plan.bucket, plan.bin, encoder_level=level)
        assert raw.hash == plan.hash, level
        own = planner.plan_raw(5, plan.bucket, plan.bin, node=plan.images.node, node_bin=plan.images.bin)
        assert own.hash == plan.hash


def test_what_is_wrong_with_a_plan_is_said_in_one_sentence_at_both_doors(
    open_handle: Any, blend: str, planner: Planner
) -> None:
    loading = open_handle(spec_of(blend))
    plan = planner.plan(3)
    assert plan.images is not None
    n = len(plan.images.node)
    row, number = int(plan.step.images.row[-1]), int(plan.step.images.number[-1])  # type: ignore[union-attr]
    last = f"Picture {number} of row {row} of step 3"
    rows: dict[str, Any] = {"bucket": plan.bucket, "bin": plan.bin}
    node, node_bin = plan.images.node, plan.images.bin
    pictures = {"node": node, "node_bin": node_bin}
    unknown_rank, no_place = node.copy(), node.copy()
    unknown_rank[-1], no_place[-1] = 4, -1
    sentences = {
        f"{last} has no node: {n - 1} are given for {n} pictures. Plan each picture once": {
            "node": node[:-1],
            "node_bin": node_bin,
        },
        f"{n + 1} pictures get a node, and the step has {n}, so that one is planned twice": {
            "node": [*node, 0],
            "node_bin": node_bin,
        },
        f"{last} is planned for node 4, and there are 0 to 3": pictures | {"node": unknown_rank},
        f"{last} is planned for node -1, and there are 0 to 3": pictures | {"node": no_place},
        f"{last} is planned for microbatch 2, and there are 0 to 1": pictures
        | {"node_bin": [*node_bin[:-1], 2]},
        r"Row 7 of step 3 .* has no bucket: 7 are given for 8 rows. Plan each row once": {
            "bucket": plan.bucket[:-1]
        },
        r"9 rows get a bucket, and the step has 8": {"bucket": [*plan.bucket, 0]},
        r"Row 0 of step 3 .* is planned for bucket 2, and there are 0 to 1": {
            "bucket": [2, *plan.bucket[1:]]
        },
        "gives one of them alone": {"node": node},
        "by `node`, and by `encoder_level`, too": pictures | {"encoder_level": "intra"},
        "`sideways` is not a level of balance": {"encoder_level": "sideways"},
        r"gives float64 in the shape \(8,\) as `bin`": {"bin": plan.bin + 0.5},
    }
    for sentence, arguments in sentences.items():
        for door in (planner, loading):
            with pytest.raises(InvalidRequest, match=sentence):
                door.plan_raw(3, **rows | arguments)


def test_places_of_pictures_need_an_encoder(open_handle: Any, blend: str) -> None:
    loading = open_handle(spec_of(blend, strategy="llm", encoder=None))
    zeros, ones = [0] * 4 + [1] * 4, [0, 1] * 4
    assert "encoder" not in loading.plan_raw(0, zeros, ones)
    for options in ({"node": [], "node_bin": []}, {"encoder_level": "intra"}):
        with pytest.raises(InvalidRequest, match="and the spec has no `encoder`"):
            loading.plan_raw(0, zeros, ones, **options)


def test_a_summary_of_many_pages_is_the_summary(
    open_handle: Any, blend: str, planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffer_summary, "PAGE_BYTES", 200)
    whole = planner.summary_buffer(1).summary()
    pages = list(whole.pages())
    assert 2 < len(pages) <= ROWS
    assert max(len(page.rows) for page in pages) > 1 or len(pages) == ROWS
    assert BufferSummary.whole(pages) == whole == open_handle(spec_of(blend)).summary_buffer(1)


def test_a_plan_above_the_bound_of_a_request_is_refused(blend: str, open_handle: Any) -> None:
    loading = open_handle(spec_of(blend))
    many = np.zeros(2_100_000, dtype=np.int64)
    with pytest.raises(InvalidRequest, match=r"reads at most 4,194,304|2,100,000 rows get a bucket"):
        loading.plan_raw(0, many, many)


def test_the_module_of_the_page_measures_a_plan_of_a_constructor(blend: str, shared_lake: Settings) -> None:
    blocks = re.findall("```python\n(.*?)```", (ROOT / "docs/loading.md").read_text(), re.DOTALL)
    (module,) = [block for block in blocks if "loading.plan_raw(" in block]
    names: dict[str, Any] = {}
    exec(module, names)
    blends, spec = open_blends(shared_lake), spec_of(blend)
    loader = served_loader(blends.open(blend), spec)
    with BlenderServer([*blend_services(blends), loading_service(loader, blends)]) as server:
        bucket, bin = by_halves(loader.summary_buffer(4))
        time = names["halves"](server.address, 4)
    assert time == open_planner(spec, shared_lake).plan_raw(4, bucket, bin).figures["microbatch"].after


def longest_first(step: StepColumns, tree: ClientPlaceTree, spec: LoadingSpec) -> Plan:
    return raw_plan(step, tree, spec, *by_halves(step.summary()))


def test_a_strategy_delivers_a_plan_of_ones_own(open_handle: Any, blend: str, planner: Planner) -> None:
    loading = open_handle(spec_of(blend, strategy=f"{__name__}:longest_first"))
    step = next(loading.read(StepRange(2, 1), 0))
    assert step.plan == planner.plan_raw(2, *by_halves(loading.summary_buffer(2))).hash


def test_a_step_behind_the_data_has_no_summary(open_handle: Any, shared_lake: Settings) -> None:
    source = Source(PICTURES, ROWS, columns=("tokens", "images"))
    loading = open_handle(spec_of(open_blends(shared_lake).create([source], pad=True).id))
    with pytest.raises(EndOfData):
        loading.summary_buffer(3)
    with pytest.raises(EndOfData):
        loading.plan_raw(3, [0], [0])
