"""Verdicts by losses: robust scales by language, limits, and what a person overrules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from factory.clusters.verdicts import VerdictLimits, judge
from factory.errors import ConfigurationError
from spark_udfs.clusters.verdicts import LEAST_CLUSTERS, LEAST_DEVIATION, NO_LIMIT, ClusterVerdict, Scale

COLUMNS = pa.schema(
    [
        ("cluster", pa.int32()),
        ("language", pa.string()),
        ("loss", pa.float64()),
        ("loss_after", pa.float64()),
    ]
)
ENGLISH = [2.0, 2.1, 1.9, 2.2, 1.8, 2.0, 2.1, 1.9]


def losses(*clusters: tuple[str | None, float | None]) -> pa.Table:
    rows = [
        {"cluster": number, "language": language, "loss": after and 2 * after, "loss_after": after}
        for number, (language, after) in enumerate(clusters)
    ]
    return pa.Table.from_pylist(rows, COLUMNS)


def verdicts(
    table: pa.Table, by_hand: Mapping[int, ClusterVerdict] | None = None, limits: VerdictLimits | None = None
) -> list[dict[str, Any]]:
    batches = judge(table, limits or VerdictLimits(), by_hand or {}).verdicts(iter(table.to_batches()))
    return pa.Table.from_batches(batches).to_pylist()


def english(*others: tuple[str | None, float | None]) -> pa.Table:
    return losses(*(("en", after) for after in ENGLISH), *others)


def test_noise_is_discarded_and_repetition_downsampled() -> None:
    rows = verdicts(english(("en", 7.0), ("en", 0.3)), limits=VerdictLimits(rate=0.4))
    assert [row["verdict"] for row in rows] == ["keep"] * 8 + ["discard", "downsample"]
    assert [row["rate"] for row in rows] == [1.0] * 8 + [0.0, 0.4]
    assert rows[8]["loss_after"] > rows[8]["high"] > rows[0]["loss_after"] > rows[9]["low"]
    assert rows[8]["z_after"] > 5
    assert rows[9]["z_after"] < -3


@pytest.mark.parametrize("n_clusters", [1, 3, LEAST_CLUSTERS - 1])
def test_too_few_clusters_to_compare_are_all_kept(n_clusters: int) -> None:
    others = [("en", after) for after in ENGLISH[: n_clusters - 1]]
    rows = verdicts(losses(*others, ("en", 9.0)))
    assert {(row["verdict"], row["high"], row["rate"]) for row in rows} == {("keep", None, 1.0)}


def test_a_language_of_enough_clusters_has_its_own_median() -> None:
    german = [("de", 5 + after) for after in ENGLISH]
    rows = verdicts(english(*german, ("de", 5.0 + 2.0), ("fr", 2.2)))
    assert {row["verdict"] for row in rows} == {"keep"}
    assert rows[0]["high"] < rows[8]["low"]
    few = verdicts(english(*german[: LEAST_CLUSTERS - 1]))
    everywhere = Scale.from_losses(np.array([row["loss_after"] for row in few]))
    assert few[8]["z_after"] == pytest.approx(everywhere.z(few[8]["loss_after"]))


def test_equal_clusters_are_no_outliers() -> None:
    rows = verdicts(losses(*[("en", 2.0)] * 9, ("en", 2.0 + 4 * LEAST_DEVIATION), ("en", 1.6)))
    assert {row["verdict"] for row in rows} == {"keep"}
    assert rows[9]["z_after"] == pytest.approx(4)


def test_half_the_median_is_as_far_as_a_quarter_is_from_half() -> None:
    limits = VerdictLimits(easy=1.0)
    twice, plain = (
        verdicts(losses(*[("en", times * after) for after in ENGLISH]), limits=limits) for times in (2, 1)
    )
    assert twice[0]["low"] == pytest.approx(2 * plain[0]["low"])


def test_a_cluster_without_a_loss_is_too_small_and_stays() -> None:
    small = verdicts(english(("en", None)))[8]
    assert (small["verdict"], small["rate"], small["z"], small["z_after"]) == ("too_small", 1.0, None, None)
    alone = verdicts(losses(("en", None)))[0]
    assert (alone["verdict"], alone["high"], alone["low"]) == ("too_small", None, None)


@pytest.mark.parametrize("after", [7.0, 2.0, 0.3, None])
@pytest.mark.parametrize("ruling, rate", [("keep", 1.0), ("downsample", 0.25), ("discard", 0.0)])
def test_a_verdict_by_hand_overrules_every_other(
    after: float | None, ruling: ClusterVerdict, rate: float
) -> None:
    row = verdicts(english(("en", after)), {8: ruling})[8]
    assert (row["verdict"], row["rate"], row["by_hand"]) == (ruling, rate, True)
    if ruling != "discard":
        assert row["high"] == NO_LIMIT


def test_a_verdict_by_hand_leaves_the_others_as_they_are() -> None:
    table = english(("en", 7.0), ("en", 0.3))
    assert verdicts(table, {8: "keep"})[:8] == verdicts(table)[:8]
    assert verdicts(table, {8: "keep"})[9] == verdicts(table)[9]


def test_overruling_a_cluster_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="overrule cluster 17, and there is no such cluster"):
        verdicts(english(), {0: "keep", 17: "keep"})
    with pytest.raises(ConfigurationError, match="Clusters: 0 to 7"):
        verdicts(english(), {-2: "keep"})


def test_a_quarter_of_outliers_moves_the_limits_little() -> None:
    chance = np.random.default_rng(2)
    values = chance.normal(2, 0.4, 300)
    clean, with_outliers = (
        Scale.from_losses(np.concatenate([values, more])) for more in ([], [7.0] * 60 + [0.3] * 40)
    )
    assert with_outliers.median == pytest.approx(clean.median, abs=0.05)
    assert with_outliers.deviation == pytest.approx(clean.deviation, rel=0.1)


@given(values=st.lists(st.floats(1, 1.5), min_size=1, max_size=30))
def test_the_scale_of_close_losses_is_the_median_and_its_robust_deviation(values: list[float]) -> None:
    scale = Scale.from_losses(np.array(values))
    assume(all(abs(loss - scale.median) <= 3 * scale.deviation for loss in values))
    distances = sorted(abs(loss - scale.median) for loss in values)
    assert scale.deviation >= LEAST_DEVIATION
    middle = len(values) // 2
    assert scale.median == pytest.approx((sorted(values)[middle] + sorted(values)[~middle]) / 2)
    deviation = 1.4826 * (distances[middle] + distances[~middle]) / 2
    assert scale.deviation == pytest.approx(max(deviation, LEAST_DEVIATION))


@given(order=st.permutations(range(10)))
def test_verdicts_do_not_depend_on_the_order_of_clusters(order: list[int]) -> None:
    table = english(("en", 7.0), ("de", 0.3))
    in_order = verdicts(table.take(order))
    assert sorted(in_order, key=lambda row: row["cluster"]) == verdicts(table)
