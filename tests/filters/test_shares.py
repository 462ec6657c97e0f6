"""A share of the documents becomes the exact bound, however the signals are partitioned."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from factory.errors import ConfigurationError
from factory.filters.limits import AtLeast, AtMost, Bottom, Share, Top
from factory.filters.rounds import Round
from factory.filters.rule import Rule
from factory.filters.shares import limits_table, with_bounds
from factory.filters.stage import decide
from spark_udfs.filters import ranks

floats = st.floats(allow_nan=False)


@given(st.lists(floats, min_size=1))
def test_the_bits_of_numbers_sort_as_the_numbers(values: list[float]) -> None:
    numbers = ranks.sortable(np.array(values))
    assert [ranks.number_at(int(number)) for number in np.sort(numbers)] == sorted(values)


@given(st.lists(floats, min_size=1, max_size=50), st.integers(0, 3))
def test_counts_by_bits_are_those_of_the_numbers_with_a_prefix(values: list[float], level: int) -> None:
    numbers = [int(number) for number in ranks.sortable(np.array(values))]
    prefix = numbers[0] >> (64 - 16 * level) if level else 0
    column = pa.record_batch([pa.array(values)], ["value"])
    [counts] = ranks.count(iter([column.slice(0, 1), column.slice(1)]), prefix, level)
    expected: dict[int, int] = {}
    for number in numbers:
        if number >> (64 - 16 * level) == prefix:
            bits = number >> (48 - 16 * level) & 0xFFFF
            expected[bits] = expected.get(bits, 0) + 1
    assert dict(zip(counts["bits"].to_pylist(), counts["n"].to_pylist(), strict=True)) == expected


def rule(share: Share) -> Rule:
    [chosen] = Round(rules=["word_count"]).build()
    return chosen.with_limit(share)


@pytest.mark.spark
@pytest.mark.parametrize(
    "share, expected",
    [
        (Top(0.1), {"rule": "word_count", "side": "top", "share": 0.1, "limit": 91.0}),
        (Bottom(0.25), {"rule": "word_count", "side": "bottom", "share": 0.25, "limit": 25.0}),
        (Top(0.999), {"rule": "word_count", "side": "top", "share": 0.999, "limit": 1.0}),
        (Bottom(0.001), {"rule": "word_count", "side": "bottom", "share": 0.001, "limit": 1.0}),
    ],
)
@pytest.mark.parametrize("n_tasks", [1, 8])
def test_the_bound_is_the_last_value_inside_the_share(
    spark: SparkSession, share: Share, expected: dict[str, object], n_tasks: int
) -> None:
    values = [float(number) for number in range(1, 101)]
    rows = [(f"d{number}", value, None) for number, value in enumerate([*values, None])]
    signals = spark.createDataFrame(rows, "doc_id string, word_count double, partition string").repartition(
        n_tasks
    )
    [row] = limits_table(signals, [rule(share)]).toArrow().to_pylist()
    assert row == expected | {"n_documents": 100, "partition": None}
    verdicts = decide(signals, with_bounds([rule(share)], {"word_count": row["limit"]}))
    assert (
        verdicts.where("kept").count() == max(1, round(share.share * 100)) + 1
    )  # and the one without a value


@pytest.mark.spark
def test_values_of_any_sign_and_equal_values_are_ranked(spark: SparkSession) -> None:
    values = [-1e300, -5.5, -5.5, -0.0, 0.0, math.ulp(0.0), 2.0, 2.0, 2.0, 1e300]
    rows = [(f"d{number}", value, None) for number, value in enumerate(values)]
    signals = spark.createDataFrame(rows, "doc_id string, word_count double, partition string")
    for inside in range(1, 10):
        [top] = limits_table(signals, [rule(Top(inside / 10))]).toArrow()["limit"].to_pylist()
        [bottom] = limits_table(signals, [rule(Bottom(inside / 10))]).toArrow()["limit"].to_pylist()
        assert struct.pack("d", top + 0.0) == struct.pack("d", sorted(values)[-inside] + 0.0)
        assert struct.pack("d", bottom + 0.0) == struct.pack("d", sorted(values)[inside - 1] + 0.0)


@pytest.mark.spark
def test_a_rule_without_a_value_has_no_bound_and_rejects_none(spark: SparkSession) -> None:
    signals = spark.createDataFrame([("d", None, None)], "doc_id string, word_count double, partition string")
    limits = limits_table(signals, [rule(Top(0.1))]).toArrow()
    assert limits.to_pylist() == []
    assert with_bounds([rule(Top(0.1))], {}) == []
    with pytest.raises(ConfigurationError, match=r"the top 10 % of the documents\. Find its bound first"):
        decide(signals, [rule(Top(0.1))])


def test_shares_are_read_from_plain_values() -> None:
    [chosen] = Round(rules=["word_count"], limits={"word_count": {"top": 0.1}}).build()
    assert chosen.limit == Top(0.1)
    assert str(chosen.limit) == "the top 10 %"
    assert Top(0.1).at_bound(3.0) == AtLeast(3.0)
    assert Bottom(0.1).at_bound(3.0) == AtMost(3.0)
    for share in (0, 1, -0.5, 10):
        with pytest.raises(ConfigurationError, match="Give one between 0 and 1"):
            Top(share)
