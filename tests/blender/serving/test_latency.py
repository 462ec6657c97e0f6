"""The histogram of answers, against Prometheus's own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from prometheus_client import Histogram as PrometheusHistogram

from blender.rows.counts import Counts
from blender.serving import latency
from blender.serving.calls import CallLimiter, Limits
from blender.serving.latency import BOUNDS_S, note_answer
from blender.serving.metrics import FAMILIES, Histogram, samples

SECONDS = st.one_of(st.sampled_from([0.0, *BOUNDS_S]), st.floats(0, 1e4))


@given(st.lists(SECONDS, min_size=1))
def test_the_histogram_is_the_one_that_prometheus_would_make(answers: Sequence[float]) -> None:
    registry = CollectorRegistry()
    expected = PrometheusHistogram("answers", "Answers.", ["method"], registry=registry, buckets=BOUNDS_S)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("blender.serving.metrics.ANSWERS", counts := Counts())
        patch.setattr(latency, "ANSWERS", counts)
        for seconds in answers:
            expected.labels("Fetch").observe(seconds)
            note_answer("Fetch", seconds)
        (family,) = [one for one in FAMILIES if isinstance(one, Histogram)]
        metric = family.metric(samples(CallLimiter(Limits())))
    suffixes = ("_bucket", "_count", "_sum")
    ours: dict[str, dict[str | None, float]] = {
        sample.name.removeprefix(family.name): {} for sample in metric.samples
    }
    for one in metric.samples:
        ours[one.name.removeprefix(family.name)][one.labels.get("le")] = one.value
    for suffix in suffixes:
        for le, value in ours[suffix].items():
            labels = {"method": "Fetch"} if le is None else {"method": "Fetch", "le": le}
            assert registry.get_sample_value(f"answers{suffix}", labels) == pytest.approx(value)
    assert len(ours["_bucket"]) == len(BOUNDS_S) + 1
