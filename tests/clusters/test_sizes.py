"""Numbers of cells and clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.clusters.sizes import MOST_CLUSTERS, clusters_by_cell, n_cells
from factory.errors import ConfigurationError


@pytest.mark.parametrize(
    "n_documents, cells", [(1, 1), (3, 1), (100, 5), (1_000_000, 500), (10**9, 15_000), (10**10, 15_000)]
)
def test_cells_grow_with_the_root_of_the_documents(n_documents: int, cells: int) -> None:
    assert n_cells(n_documents) == cells


def test_a_cell_has_a_cluster_for_300_documents() -> None:
    sizes = np.array([0, 1, 449, 451, 3_000, 10**9])
    assert clusters_by_cell(sizes).tolist() == [1, 1, 1, 2, 10, MOST_CLUSTERS]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=30), st.floats(0, 1))
def test_a_number_of_clusters_is_met_exactly(n_documents: list[int], share: float) -> None:
    sizes = np.array(n_documents)
    most = np.maximum(sizes, 1)
    total = len(sizes) + round(share * (int(most.sum()) - len(sizes)))
    if total > sizes.sum():
        return
    clusters = clusters_by_cell(sizes, total)
    assert clusters.sum() == total
    assert (clusters >= 1).all()
    assert (clusters <= most).all()
    assert all(clusters[a] <= clusters[b] for a in range(len(sizes)) for b in range(a) if sizes[a] < sizes[b])


def test_impossible_numbers_are_refused_with_the_possible_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"12 documents cannot have 13 cells. Give 1 to 12 cells"):
        n_cells(12, 13)
    with pytest.raises(ConfigurationError, match="cannot have 0 cells"):
        n_cells(12, 0)
    with pytest.raises(ConfigurationError, match="nothing to cluster"):
        n_cells(0)
    sizes = np.array([5, 7])
    with pytest.raises(ConfigurationError, match="12 documents cannot have 13 clusters"):
        clusters_by_cell(sizes, 13)
    with pytest.raises(ConfigurationError, match="1 clusters are too few for 2 cells"):
        clusters_by_cell(sizes, 1)
