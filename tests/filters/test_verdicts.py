"""Batches of values become verdicts, row for row, as Spark's workers decide them."""

from __future__ import annotations

from math import inf, isnan, nan

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.filters.limits import AtLeast, AtMost, Between, Limit, bounds
from factory.lake.schemas.filters import FILTERED
from spark_udfs.filters import verdicts
from spark_udfs.filters.verdicts import decide, judge

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


def failure(name: str, limit: Limit, value: float | None, *, rejects_missing: bool) -> Row | None:
    """The value and the bound that a document fails by, None if it passes."""
    if value is None or isnan(value):
        return [None, limit.high if isinstance(limit, AtMost) else limit.low] if rejects_missing else None
    bound = limit.violated(value)
    return None if bound is None else [value, bound]


@pytest.mark.invariant(
    "A condition that asks for a value rejects a document without one, a condition that only excludes "
    "keeps it, and verdicts, run and trace name every rule that a document passes without a value."
)
@given(st.lists(st.tuples(LIMITS, st.booleans()), max_size=4), st.data())
@settings(deadline=None)
def test_verdicts_are_those_of_the_limits_one_by_one(
    limits: list[tuple[Limit, bool]], data: st.DataObject
) -> None:
    row = st.lists(st.none() | st.just(nan) | NUMBERS, min_size=len(limits), max_size=len(limits))
    rows: list[Row] = data.draw(st.lists(row, max_size=5))
    named = [
        verdicts.RuleLimit(f"rule {at}", *bounds(limit), asks) for at, (limit, asks) in enumerate(limits)
    ]
    [decided] = decide(iter([batch(rows, len(limits))]), named, FILTERED.columns)
    expected = []
    for at, values in enumerate(rows):
        judged = [
            (name.rule, failure(name.rule, limit, value, rejects_missing=asks), value)
            for name, (limit, asks), value in zip(named, limits, values, strict=True)
        ]
        rejections = [
            {"rule": rule, "value": failed[0], "threshold": failed[1]} for rule, failed, _ in judged if failed
        ]
        without_value = [
            rule for rule, failed, value in judged if failed is None and (value is None or isnan(value))
        ]
        verdict = {"doc_id": str(at), "kept": not rejections, "rejections": rejections}
        expected.append(verdict | {"without_value": without_value, "partition": None if at % 2 else "p"})
    assert decided.schema == FILTERED.columns
    assert decided.to_pylist() == expected


OWN = st.none() | st.just(nan) | NUMBERS


@given(st.lists(st.tuples(NUMBERS, OWN), max_size=6), NUMBERS)
@settings(deadline=None)
def test_a_document_fails_the_lower_of_the_limit_and_its_own_ceiling(
    rows: list[tuple[float, float | None]], high: float
) -> None:
    plain = batch([[number, number] for number, _ in rows], 2)
    ceilings = pa.array([ceiling for _, ceiling in rows], pa.float64())
    limits = [
        verdicts.RuleLimit("plain", -inf, high),
        verdicts.RuleLimit("own", -inf, high, has_ceilings=True),
    ]
    [verdict_rows] = decide(iter([plain.append_column("ceiling_1", ceilings)]), limits, FILTERED.columns)
    for (number, ceiling), row in zip(rows, verdict_rows.to_pylist(), strict=True):
        lowest = high if ceiling is None or isnan(ceiling) else min(high, ceiling)
        bound_by_rule = {"plain": high, "own": lowest}
        assert {failure["rule"]: failure["threshold"] for failure in row["rejections"]} == {
            rule: bound for rule, bound in bound_by_rule.items() if number > bound
        }


def test_a_limit_with_ceilings_needs_their_column() -> None:
    values = batch([[1.0]], 1).select(["value_0"])
    with pytest.raises(ValueError, match="1 limits need a column of ceilings each"):
        judge(values, [verdicts.RuleLimit("own", -inf, 1.0, has_ceilings=True)])


def test_a_slice_of_a_batch_is_decided_by_its_own_rows() -> None:
    rows = batch([[1.0], [None], [3.0], [4.0]], 1).slice(1, 2)
    [decided] = decide(iter([rows]), [verdicts.RuleLimit("small", -inf, 2.0)], FILTERED.columns)
    assert [(row["doc_id"], row["kept"]) for row in decided.to_pylist()] == [("1", True), ("2", False)]


def test_values_of_another_type_are_an_error() -> None:
    words = pa.RecordBatch.from_pydict({"doc_id": ["a"], "partition": ["p"], "value_0": ["word"]})
    with pytest.raises(ValueError, match=r"`small` are of type string\. Cast them to float64\."):
        list(decide(iter([words]), [verdicts.RuleLimit("small", -inf, 2.0)], FILTERED.columns))
    with pytest.raises(ValueError, match="1 columns of values and 0 limits"):
        judge(words.select(["value_0"]), [])
