"""The bench of clusters: texts with labels, purity, and two levels of clusters."""

from __future__ import annotations

import numpy as np

from bench.clusters import labeled
from bench.clusters.kmeans import CELLS, _purity, _two_levels
from tests.clusters.planted import vectors_around_centers


def test_topics_are_the_same_in_every_run_and_share_their_common_words() -> None:
    first, second = labeled.topics(), labeled.topics()
    assert first.texts == second.texts
    assert np.array_equal(first.labels, second.labels)
    assert first.n_labels == labeled.N_TOPICS
    shares = [text.split().count("word0") > 0 for text in first.texts]
    assert np.mean(shares) > 0.9


def test_purity_is_the_share_of_the_largest_label_of_each_cluster() -> None:
    assert _purity(np.array([0, 0, 1, 1, 2]), np.array([7, 7, 7, 8, 8])) == 3 / 5


def test_two_levels_have_as_many_clusters_as_one() -> None:
    vectors, _ = vectors_around_centers(3_000, 60, 16)
    numbers, _ = _two_levels(vectors, 60, 0)
    assert CELLS < len(np.unique(numbers)) <= 60
