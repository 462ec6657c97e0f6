"""A plan holds whole numbers that nobody changes, hashes rows and readers, and has no other microbatches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from blender.errors import InvalidRequest
from blender.loading.plan import Plan
from blender.loading.tree import Broadcast, ClientPlaceTree
from blender.spec.mesh import Mesh
from tests.blender.loading.steps import step_of

STEP = step_of([[1], [2], [3], [4]])
COSTS = np.array([1, 2, 3, 4], dtype=np.uint64)


def plan_of(bucket: Any = (0, 0, 1, 1), bin: Any = (0, 1, 0, 1), costs: Any = COSTS, **fields: Any) -> Plan:
    return Plan(STEP, bucket, bin, costs, 2, 2, **fields)


def test_the_hash_is_of_the_rows_and_of_their_readers() -> None:
    consumers = ClientPlaceTree(Mesh(dp=2, cp=2, pp=3)).consumers("DP", [Broadcast("tp")])
    first, *others = consumers
    plan = plan_of(consumers=consumers)
    assert plan_of(consumers=consumers).hash == plan.hash
    readers = [
        (),
        consumers[:-1],
        consumers[::-1],
        ClientPlaceTree(Mesh(dp=2, cp=2, pp=3, order="dp-cp-tp-pp")).consumers("DP", [Broadcast("tp")]),
        *[
            (replace(first, **change), *others)
            for change in ({"rank": 99}, {"bucket": 1}, {"piece": 1}, {"pieces": 3}, {"needs_tokens": False})
        ],
    ]
    hashes = {plan_of(consumers=reader).hash for reader in readers}
    assert len(hashes | {plan.hash}) == len(readers) + 1
    assert plan_of(bin=(1, 0, 0, 1), consumers=consumers).hash not in hashes | {plan.hash}


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"bucket": np.array([0.9, 0, 1, 1])}, "gives float64 as bucket of the rows of step 5"),
        ({"bucket": np.full(4, np.nan)}, "gives float64 as bucket"),
        ({"bin": ["a", "b", "c", "d"]}, "as bin of the rows"),
        ({"bin": None}, r"gives a bin to rows in the shape \(\), and step 5 has 4"),
        ({"bin": np.zeros((2, 2), dtype=int)}, r"gives a bin to rows in the shape \(2, 2\)"),
        ({"bin": [0, 1]}, "gives a bin to 2 rows"),
        ({"bucket": [0, 0, 0, -1]}, "names a bucket -1 or 0"),
        ({"bucket": np.array([0, 0, 0, 2**64 - 1], dtype=np.uint64)}, "names a bucket -1"),
        ({"costs": COSTS[:2]}, "gives a cost to 2 rows"),
        ({"costs": COSTS / 2}, "gives float64 as costs"),
    ],
)
def test_other_than_a_whole_number_a_row_is_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        plan_of(**fields)


def test_nobody_writes_into_a_plan_or_into_the_facts_of_a_step() -> None:
    plan = plan_of()
    arrays = [plan.bucket, plan.bin, plan.costs, STEP.source, STEP.ordinal, STEP.epoch, *STEP.facts.values()]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("bucket, bin", [(2, 0), (-1, 1), (0, 2), (0, -1), (0.5, 0), ("0", 0)])
def test_a_microbatch_that_the_plan_lacks_is_refused(bucket: Any, bin: Any) -> None:
    plan = plan_of()
    assert plan.rows_of(np.int64(1), 0).tolist() == [2]
    with pytest.raises(InvalidRequest, match=r"`bucket` is|`bin` is"):
        plan.rows_of(bucket, bin)


def test_a_bucket_or_a_source_that_the_plan_lacks_is_refused() -> None:
    plan = plan_of()
    for other in (-1, 2, 1.5):
        with pytest.raises(InvalidRequest, match="`bucket` is"):
            plan.rows_of_bucket(other)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="`bucket` is"):
            plan.constructor_do_plan(other)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="`source` is 1"):
        plan.loader_do_plan(1)
