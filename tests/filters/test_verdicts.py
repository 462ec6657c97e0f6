"""Batches of values become verdicts, row for row, as Spark's workers decide them."""

from __future__ import annotations

from math import inf, nan

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory import _native
from factory.filters.limits import AtLeast, AtMost, Between, Limit, bounds
from factory.lake.schemas.filters import FILTERED
from spark_udfs.filters.verdicts import decide

Row = list[float | None]
NUMBERS = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e300])
LIMITS = st.one_of(
    st.builds(AtLeast, NUMBERS),
    st.builds(AtMost, NUMBERS),
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: Between(min(pair), max(pair))),
)


def batch(rows: list[Row], n_values: int) -> pa.RecordBatch:
    values = [pa.array([row[at] for row in rows], pa.float64()) for at in range(n_values)]
    ids = pa.array([str(at) for at in range(len(rows))], pa.string())
    parts = pa.array([None if at % 2 else "p" for at in range(len(rows))], pa.string())
    return pa.RecordBatch.from_arrays(
        [ids, parts, *values], names=["doc_id", "partition", *(f"value_{at}" for at in range(n_values))]
    )


@given(st.lists(LIMITS, max_size=4), st.data())
@settings(deadline=None)
def test_verdicts_are_those_of_the_limits_one_by_one(limits: list[Limit], data: st.DataObject) -> None:
    row = st.lists(st.none() | st.just(nan) | NUMBERS, min_size=len(limits), max_size=len(limits))
    rows: list[Row] = data.draw(st.lists(row, max_size=5))
    named = [(f"rule {at}", limit) for at, limit in enumerate(limits)]
    [decided] = decide(
        iter([batch(rows, len(limits))]), [(name, *bounds(limit)) for name, limit in named], FILTERED.columns
    )
    expected = [
        [
            {"rule": name, "value": value, "threshold": limit.violated(value)}
            for (name, limit), value in zip(named, row, strict=True)
            if limit.violated(value) is not None
        ]
        for row in rows
    ]
    assert decided.schema == FILTERED.columns
    assert decided.to_pylist() == [
        {"doc_id": str(at), "kept": not found, "rejections": found, "partition": None if at % 2 else "p"}
        for at, found in enumerate(expected)
    ]


def test_a_slice_of_a_batch_is_decided_by_its_own_rows() -> None:
    rows = batch([[1.0], [None], [3.0], [4.0]], 1).slice(1, 2)
    [decided] = decide(iter([rows]), [("small", -inf, 2.0)], FILTERED.columns)
    assert [(row["doc_id"], row["kept"]) for row in decided.to_pylist()] == [("1", True), ("2", False)]


def test_values_of_another_type_are_an_error() -> None:
    words = pa.RecordBatch.from_pydict({"doc_id": ["a"], "partition": ["p"], "value_0": ["word"]})
    with pytest.raises(ValueError, match=r"`small` are of type Utf8\. Cast them to float64\."):
        list(decide(iter([words]), [("small", -inf, 2.0)], FILTERED.columns))
    with pytest.raises(ValueError, match="1 columns of values and 0 limits"):
        _native.rejections(words.select(["value_0"]), [])
