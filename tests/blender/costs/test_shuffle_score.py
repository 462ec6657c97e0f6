"""The shuffle score: 1 for a perfect shuffle, the batch's rows for none, and chi2/df between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from blender.costs.shuffle_score import TOPICS, epoch_score, shuffle_score
from blender.spec.permutation import Identity
from blender.spec.shuffle import Shuffle, permutation

N = 64_000


def scored(shuffle: Shuffle, batch_rows: int, n: int = N) -> float:
    order = permutation(shuffle, n, seed=3, epoch=0, source="s")
    return epoch_score(order.forward, n, batch_rows)


@pytest.mark.parametrize("batch_rows", [1, 8, 64, 500])
def test_a_full_permutation_scores_one(batch_rows: int) -> None:
    assert scored(Shuffle("row"), batch_rows) == pytest.approx(1, abs=0.06)


@pytest.mark.parametrize("batch_rows", [1, 10, 100, 500])
def test_rows_in_their_own_order_score_as_many_as_a_batch_has(batch_rows: int) -> None:
    n_rows = 1000 * TOPICS  # topics of 1,000, so that no batch has rows of two
    perfect_of_all = (n_rows - 1) / (n_rows - batch_rows)
    assert scored(Shuffle(), batch_rows, n_rows) == pytest.approx(batch_rows * perfect_of_all)


def test_a_batch_that_has_every_topic_equally_often_scores_none() -> None:
    ordinals = np.arange(TOPICS).reshape(1, -1) * 10
    assert shuffle_score(ordinals, 10 * TOPICS) == 0


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(2, 30), st.integers(1, 40))
def test_the_score_is_chi_square_over_its_degrees_of_freedom(
    seed: int, batches: int, batch_rows: int
) -> None:
    n_rows = 200 * 8
    ordinals = np.random.default_rng(seed).integers(0, n_rows, (batches, batch_rows))
    chi2 = sum(stats.chisquare(np.bincount(batch // 200, minlength=8)).statistic for batch in ordinals)
    of_a_finite_source = (n_rows - 1) / (n_rows - batch_rows)
    assert shuffle_score(ordinals, n_rows, 8) == pytest.approx(chi2 / (batches * 7) * of_a_finite_source)


@pytest.mark.parametrize("window_pages", [16, 64, 256])
def test_the_score_of_windows_grows_with_batches_per_page(window_pages: int) -> None:
    """Two rows of a batch lie in one page with the chance of 1 in `window_pages`."""
    found = scored(Shuffle("page_window", 100, window_pages), 100, n=640_000)
    assert found == pytest.approx(1 + 99 / window_pages, rel=0.1)


def test_pages_of_a_batch_score_as_no_shuffle_does() -> None:
    assert scored(Shuffle("page", 100), 100) == pytest.approx(100, rel=0.02)


@pytest.mark.parametrize("n, batch_rows", [(1, 1), (1, 8), (5, 5), (5, 8)])
def test_a_batch_of_all_rows_has_nothing_to_mix(n: int, batch_rows: int) -> None:
    assert epoch_score(Identity().forward, n, batch_rows) == 1


def test_uneven_topics_count_with_their_rows() -> None:
    n_rows = 10  # three topics of 3, 3 and 4 rows
    batch = np.array([[0, 3, 6]])
    share = np.array([0.3, 0.3, 0.4])
    deviations = ((1 - 3 * share) ** 2).sum()
    variance = (3 * share * (1 - share)).sum() * (10 - 3) / 9
    assert shuffle_score(batch, n_rows, 3) == pytest.approx(deviations / variance)
