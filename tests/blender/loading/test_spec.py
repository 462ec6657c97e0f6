"""A spec is read from its own JSON alone, and describes what can be planned."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from blender.catalog.blends import Blends
from blender.errors import InvalidRequest
from blender.loading.costs import Backbone
from blender.loading.options import buckets_of
from blender.loading.spec import LoadingSpec
from blender.records import Schedule, Source
from blender.spec.mesh import Mesh
from blender.trainer.local import LocalBlender
from factory.settings import Settings
from tests.blender.lakes import CODE, PROSE

SPEC = LoadingSpec(blend="0" * 32, mesh=Mesh(dp=4), model=Backbone(64, 2), microbatches=2)
FIELDS = json.loads(SPEC.canonical_json())


@pytest.mark.parametrize(
    "data, sentence",
    [
        (SPEC.canonical_json()[:-4], "The JSON of the spec is damaged"),
        (b"", "The JSON of the spec is damaged"),
        (b"\xff\xfe\x00{", "The JSON of the spec is damaged"),
        (b"[]", "is an object, and this is a list"),
        (b"null", "is an object, and this is a NoneType"),
        (b"3", "is an object, and this is a int"),
    ],
)
def test_other_data_is_no_spec(data: bytes, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        LoadingSpec.from_json(data)


@pytest.mark.parametrize("written", ["2", True, 1, 3, None, 2.0, [2]])
def test_another_format_is_refused(written: Any) -> None:
    with pytest.raises(InvalidRequest, match="This spec has format"):
        LoadingSpec.from_json(json.dumps({**FIELDS, "format": written}).encode())


@pytest.mark.parametrize(
    "fields",
    [
        {"limit": float("nan")},
        {"limit": 2**63},
        {"colour": 1},
        {"mesh": {"dp": 0}},
        {"mesh": {"ep": 2}},
        {"mesh": "dp=2"},
        {"mesh": None},
        {"mesh": {"dp": 1.5}},
        {"model": {"hidden": -1, "layers": 2}},
        {"model": {"hidden": 64, "layers": 2.5}},
        {"model": {"hidden": 64, "layers": 2, "ffn": 0}},
        {"model": {"hidden": 64, "layers": 2, "causal": "sometimes"}},
        {"model": {"hidden": 64, "layers": 2, "experts": 8}},
        {"microbatches": 10**18},
        {"microbatches": 10**18, "equal_counts": False},
        {"mesh": {"dp": 2**20}, "microbatches": 2**5},
        {"mesh": {"pp": 20_000}, "microbatches": 16},
        {"broadcast": [3]},
        {"broadcast": ["tp/" + "9" * 5_000]},
    ],
)
def test_wrong_fields_are_refused_in_a_sentence(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"\.$"):
        LoadingSpec.from_json(json.dumps({**FIELDS, **fields}).encode())


def test_numbers_of_numpy_make_the_same_spec() -> None:
    mesh, model = Mesh(dp=np.int64(4)), Backbone(np.int32(64), np.uint8(2))  # type: ignore[arg-type]
    spec = LoadingSpec(blend="0" * 32, mesh=mesh, model=model, microbatches=np.int64(2))
    assert spec.canonical_json() == SPEC.canonical_json()
    assert spec.id == SPEC.id


def test_an_updated_spec_has_an_id_of_its_own(lake: Settings, blends: Blends) -> None:
    blender = LocalBlender(lake)
    blend = blends.create([Source(CODE, 12, oversample=True), Source(PROSE, 4, oversample=True)])
    spec = SPEC.model_copy(update={"blend": blend.id})
    before = spec.id
    updated = spec.scheduled(blender, 5, Schedule(16, ((5, {CODE: 1.0}),)))
    assert updated.id != before == spec.id
    assert updated.id == LoadingSpec.from_json(updated.canonical_json()).id


def test_buckets_are_ranges_of_numbers_that_a_mesh_can_have() -> None:
    assert buckets_of("0-2,6") == (0, 1, 2, 6)
    for text in ("0-99999999999", "9" * 5_000, "3-1"):
        with pytest.raises(InvalidRequest, match="is not a range of buckets"):
            buckets_of(text)
