"""A share of the documents becomes the exact bound, however the signals are partitioned."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

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


def signals_of(spark: SparkSession, values: Sequence[float | None]) -> DataFrame:
    """Signals of a document for each value, in one task."""
    columns = {"doc_id": [f"d{number}" for number in range(len(values))]}
    columns |= {"word_count": pa.array(values, pa.float64()), "partition": pa.nulls(len(values), pa.string())}
    return spark.createDataFrame(pa.table(columns)).coalesce(1)


@pytest.mark.spark
def test_the_bound_is_the_last_value_inside_the_share(spark: SparkSession) -> None:
    signals = signals_of(spark, [*range(1, 101), None])
    shares = {Top(0.1): 91.0, Bottom(0.25): 25.0, Top(0.999): 1.0, Bottom(0.001): 1.0}
    limits = limits_table(signals, [rule(share) for share in shares]).toArrow().to_pylist()
    for limit, (share, bound) in zip(limits, shares.items(), strict=True):
        side = "top" if isinstance(share, Top) else "bottom"
        expected = {"rule": "word_count", "side": side, "share": share.share, "limit": bound}
        assert limit == expected | {"n_documents": 100, "partition": None}
        verdicts = decide(signals, with_bounds([rule(share)], {"word_count": bound}))
        assert verdicts.where("kept").count() == max(1, round(share.share * 100))


@pytest.mark.spark
def test_the_bound_does_not_depend_on_the_number_of_tasks(spark: SparkSession) -> None:
    signals = signals_of(spark, [*range(1, 101), None]).repartition(8)
    [limit] = limits_table(signals, [rule(Top(0.1))]).toArrow().to_pylist()
    assert (limit["limit"], limit["n_documents"]) == (91.0, 100)


@pytest.mark.spark
def test_values_of_any_sign_and_equal_values_are_ranked(spark: SparkSession) -> None:
    signals = signals_of(spark, [-1e300, -5.5, -5.5, -0.0, 0.0, math.ulp(0.0), 2.0, 2.0, 2.0, 1e300])
    bounds = {Bottom(0.1): -1e300, Bottom(0.3): -5.5, Bottom(0.4): 0.0, Bottom(0.6): math.ulp(0.0)}
    bounds |= {Top(0.1): 1e300, Top(0.2): 2.0, Top(0.6): 0.0, Top(0.8): -5.5}
    limits = limits_table(signals, [rule(share) for share in bounds]).toArrow()["limit"].to_pylist()
    assert [struct.pack("d", limit + 0.0) for limit in limits] == [
        struct.pack("d", bound) for bound in bounds.values()
    ]


@pytest.mark.spark
def test_of_documents_without_a_value_none_is_among_the_best(spark: SparkSession) -> None:
    signals = signals_of(spark, [None])
    limits = limits_table(signals, [rule(Top(0.1))]).toArrow()
    assert limits.to_pylist() == []
    [verdict] = decide(signals, with_bounds([rule(Top(0.1))], {})).collect()
    assert (verdict.kept, verdict.rejections[0].value, verdict.without_value) == (False, None, [])
    [verdict] = decide(signals, with_bounds([rule(Top(0.1)).with_missing("keep")], {})).collect()
    assert (verdict.kept, verdict.rejections, verdict.without_value) == (True, [], ["word_count"])
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
