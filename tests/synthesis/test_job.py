"""The id of a job is a hash of what decides its records, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.errors import DamagedFile
from factory.synthesis.job import InvalidJob, Job, Slice

JOB = Job("loud", "raw.web", 7, "abc-10", "upper", "1", 10, {"least": 2}, slice_items=4)


@pytest.mark.parametrize(
    "change",
    [
        *({"content": "abd-10"}, {"kind": "lower"}, {"version": "2"}, {"options": {"least": 3}}),
        *({"seed": 1}, {"slice_items": 5}, {"item_seconds": 60}),
    ],
)
def test_what_decides_the_records_decides_the_id(change: dict[str, Any]) -> None:
    assert replace(JOB, **change).id != JOB.id


@pytest.mark.parametrize("change", [{"size": 11}, {"priority": 3}, {"snapshot": 8}, {"dataset": "quiet"}])
def test_what_does_not_decide_the_records_leaves_the_id(change: dict[str, Any]) -> None:
    assert replace(JOB, **change).id == JOB.id


def test_the_id_is_the_same_on_every_machine() -> None:
    assert JOB.id == replace(JOB, options=dict(JOB.options)).id == "9c763f6600b63cebeb25abc7fb0e33e2"


def test_a_job_is_read_back_as_it_was_stored() -> None:
    assert Job.parse(JOB.identity_json(), JOB.request_json()) == JOB


@pytest.mark.parametrize(
    "identity, request_", [(b"{}", b"{}"), (b"[", b"{}"), (b"[]", b"1"), (b'{"format": 9}', b"{}")]
)
def test_a_damaged_job_is_an_error_in_one_sentence(identity: bytes, request_: bytes) -> None:
    with pytest.raises(DamagedFile, match="cannot be read"):
        Job.parse(identity, request_)


@given(st.integers(1, 60), st.integers(1, 20))
def test_slices_hold_every_item_once_in_order(size: int, slice_items: int) -> None:
    slices = replace(JOB, size=size, slice_items=slice_items).slices()
    assert [document for work in slices for document in range(work.begin, work.end)] == [*range(size)]
    assert max(map(len, slices)) <= slice_items
    assert [Slice.parse(work.name) for work in slices] == slices
    assert sorted(work.name for work in slices) == [work.name for work in slices]


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"size": 0}, "asks for 0 items"),
        ({"size": -1}, "asks for -1 items"),
        ({"slice_items": 0}, "slices of 0 items"),
        ({"item_seconds": 0}, "gives an item 0 s"),
        ({"options": {"of": {1}}}, "cannot be written as JSON"),
        ({"options": {"of": float("nan")}}, "cannot be written as JSON"),
    ],
)
def test_a_job_that_cannot_be_run_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidJob, match=sentence):
        replace(JOB, **change)
