"""Losses of planted clusters, and of clusters in Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from factory import _native
from spark_udfs.clusters.losses import (
    LEAST_DOCUMENTS,
    TEXT_BYTES,
    ClusterLosses,
    beginnings,
    cluster_losses,
)
from spark_udfs.clusters.sides import sides
from tests.clusters import planted_texts


@pytest.fixture(scope="module")
def proxy() -> _native.NgramProxy:
    return planted_texts.proxy()


def test_training_tells_another_language_from_noise_and_a_template_from_text(
    proxy: _native.NgramProxy,
) -> None:
    losses = {
        kind: cluster_losses(planted_texts.array(kind), proxy, 3.0)
        for kind in ("english", "german", "template", "noise")
    }
    before, after = (
        {kind: getattr(of_kind, name) for kind, of_kind in losses.items()} for name in ("before", "after")
    )
    assert before["german"] > 0.5 * before["noise"]
    assert after["template"] < 0.7 * after["english"]
    assert after["german"] < 0.5 * after["noise"]
    assert after["german"] < 0.7 * before["german"]


def test_the_loss_is_the_bits_of_side_b_over_its_bytes(proxy: _native.NgramProxy) -> None:
    texts = planted_texts.array("german", LEAST_DOCUMENTS)
    n_bytes = np.array([len(text.encode()) for text in texts.to_pylist()])
    on_b = sides(np.arange(len(texts)), n_bytes)
    a, b = (pa.array(np.array(texts.to_pylist())[side]) for side in (~on_b, on_b))
    bits = proxy.losses(a, b, 2.0)
    losses = cluster_losses(texts, proxy, 2.0)
    assert losses.n_families == len(texts)
    assert losses.before == pytest.approx(sum(bits["before"].to_pylist()) / n_bytes[on_b].sum())
    assert losses.after == pytest.approx(sum(bits["after"].to_pylist()) / n_bytes[on_b].sum())


def test_copies_do_not_make_a_cluster_easy(proxy: _native.NgramProxy) -> None:
    once = planted_texts.array("german", 48)
    twice = pa.array([text for text in once.to_pylist()[:24] for _ in range(2)])
    without, with_copies = (cluster_losses(texts, proxy, 3.0) for texts in (once, twice))
    assert (without.n_families, with_copies.n_families) == (48, 24)
    assert with_copies.after > 0.95 * without.after


def test_too_small_a_cluster_has_families_and_no_loss(proxy: _native.NgramProxy) -> None:
    losses = cluster_losses(planted_texts.array("english", LEAST_DOCUMENTS - 1), proxy, 3.0)
    assert losses == ClusterLosses(LEAST_DOCUMENTS - 1, None, None)


def test_a_long_text_is_cut_before_a_character_that_does_not_fit() -> None:
    assert beginnings(
        pa.array(["\u00e9" * TEXT_BYTES, "x" + "\u00e9" * TEXT_BYTES, "short"])
    ).to_pylist() == [
        "\u00e9" * (TEXT_BYTES // 2),
        "x" + "\u00e9" * (TEXT_BYTES // 2 - 1),
        "short",
    ]
