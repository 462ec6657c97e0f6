"""k-means: nearest centroids by exact cosines, the same clusters of any batches and threads, good ones."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_mutual_info_score
from threadpoolctl import threadpool_limits

from spark_udfs.clusters import kmeans
from spark_udfs.clusters.kmeans import assign, fit
from tests.clusters.planted import unit, vectors_around_centers

Matrix = npt.NDArray[np.float32]


def nearly_equal_centroids(n: int, dimensions: int = 128) -> Matrix:
    """Centroids: their cosines with any vector differ by less than the error of a float32 sum."""
    chance = np.random.default_rng(5)
    center = chance.standard_normal(dimensions)
    return unit(center + 1e-6 * chance.standard_normal((n, dimensions)))


def exact_cosine(vector: Matrix, centroid: Matrix) -> Fraction:
    return sum(
        (Fraction(float(a)) * Fraction(float(b)) for a, b in zip(vector, centroid, strict=True)), Fraction()
    )


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Matrix, Matrix]:
    """Vectors and centroids of few values, so that many cosines are equal."""
    dimensions = draw(st.integers(1, 5))
    row = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=dimensions, max_size=dimensions).filter(
        any
    )
    rows = draw(st.lists(row, min_size=1, max_size=12))
    centers = draw(st.lists(row, min_size=1, max_size=9))
    return unit(np.array(rows)), unit(np.array(centers))


@given(matrices())
def test_the_nearest_centroid_has_the_largest_exact_cosine_and_the_lowest_number(
    sample: tuple[Matrix, Matrix],
) -> None:
    vectors, centroids = sample
    numbers, distances = assign(vectors, centroids)
    for vector, number, distance in zip(vectors, numbers, distances, strict=True):
        cosines = [exact_cosine(vector, centroid) for centroid in centroids]
        assert cosines[number] >= max(cosines) - Fraction(1, 10**15)
        equal = [place for place, row in enumerate(centroids) if np.array_equal(row, centroids[number])]
        assert number == equal[0]
        assert distance == pytest.approx(max(0.0, 1 - float(cosines[number])), abs=1e-12)


def test_float64_decides_where_float32_cannot() -> None:
    centroids = nearly_equal_centroids(40)
    vectors, _ = vectors_around_centers(300, 1, 128, seed=2)
    exact = (vectors.astype(np.longdouble) @ centroids.astype(np.longdouble).T).argmax(axis=1)
    assert (exact != (vectors @ centroids.T).argmax(axis=1)).mean() > 0.05
    assert np.array_equal(assign(vectors, centroids)[0], exact)


@pytest.mark.parametrize("rows", [1, 7, 300])
def test_a_row_depends_on_its_vector_alone(rows: int) -> None:
    vectors, _ = vectors_around_centers(601, 20, 48, spread=0.3)
    centroids = np.concatenate([fit(vectors, 33), nearly_equal_centroids(2_000, 48)])
    numbers, distances = assign(vectors, centroids)
    pieces = [assign(vectors[begin : begin + rows], centroids) for begin in range(0, len(vectors), rows)]
    assert np.array_equal(np.concatenate([piece for piece, _ in pieces]), numbers)
    assert np.array_equal(np.concatenate([piece for _, piece in pieces]), distances)


def test_one_thread_and_two_fit_the_same_centroids() -> None:
    vectors, _ = vectors_around_centers(5_000, 40, 64, spread=0.2)
    centroids = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            centroids.append(fit(vectors, 60).tobytes())
    assert centroids[0] == centroids[1]


def test_a_published_fit_never_changes() -> None:
    """Lakes hold centroids of this code: a new order of sums or draws is a new kind of table."""
    bits = np.random.PCG64(1).random_raw(4_000 * 8) >> np.uint64(40)
    vectors = unit(bits.astype(np.float64).reshape(4_000, 8) - 2**23)
    digest = hashlib.sha256(fit(vectors, 25).astype("<f4").tobytes()).hexdigest()
    assert digest[:16] == "4ce7afc385887063"


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 3))
def test_repeated_vectors_have_one_cluster_for_each_distinct_one(n: int, repeats: int, seed: int) -> None:
    distinct, _ = vectors_around_centers(n, n, 24, seed=seed)
    vectors = np.repeat(distinct, repeats, axis=0)
    centroids = fit(vectors, min(len(vectors), 2 * n), seed)
    assert len(centroids) == n
    numbers, distances = assign(distinct, centroids)
    assert sorted(numbers) == list(range(n))
    assert distances.max() < 1e-6


def test_rare_vectors_get_seeds_though_few_are_drawn_among() -> None:
    """Ten thousand copies and three others: a sample for the seeds would miss these."""
    distinct, _ = vectors_around_centers(4, 4, 24)
    vectors = np.concatenate([np.repeat(distinct[:1], 10_000, axis=0), distinct[1:]])
    assert len(fit(vectors, 4)) == 4


def test_clusters_are_as_tight_as_those_of_scikit_learn() -> None:
    totals = np.zeros(2)
    for seed in range(3):
        vectors, labels = vectors_around_centers(6_000, 60, 32, spread=0.12, seed=seed)
        numbers, distances = assign(vectors, fit(vectors, 60))
        peer = KMeans(60, n_init=1, random_state=seed).fit(vectors)
        _, distances_of_peer = assign(vectors, unit(peer.cluster_centers_))
        totals += distances.sum(), distances_of_peer.sum()
        assert adjusted_mutual_info_score(labels, numbers) > 0.95
    assert totals[0] < 1.1 * totals[1]  # both end in one of many optima


def test_an_empty_cluster_takes_the_farthest_vector_of_the_largest() -> None:
    vectors, _ = vectors_around_centers(50, 2, 8)
    centroids = np.concatenate([vectors[:1], vectors[1:2], -vectors[:1]])
    numbers, distances = assign(vectors, centroids[:2])
    largest = np.bincount(numbers).argmax()
    members = np.flatnonzero(numbers == largest)
    centers = kmeans._means(vectors, numbers, centroids)
    assert np.array_equal(centers[2], vectors[members[distances[members].argmax()]])


def test_opposite_vectors_have_no_mean_and_keep_their_center() -> None:
    vectors = np.array([[1, 0], [-1, 0]], np.float32)
    assert np.array_equal(fit(vectors, 1), vectors[:1]) or np.array_equal(fit(vectors, 1), vectors[1:])


@pytest.mark.parametrize("dimensions", [2, 128, 4_096])
def test_products_on_the_grid_are_whole_numbers_that_float32_adds_exactly(dimensions: int) -> None:
    vectors, _ = vectors_around_centers(20, 3, dimensions)
    vectors = np.concatenate([vectors, np.full((1, dimensions), dimensions**-0.5, np.float32)])
    grid = np.rint(vectors * np.float32(kmeans._GRID)).astype(np.int64)
    assert np.abs(grid @ grid.T).max() < 2**24


@pytest.mark.parametrize("k", [0, 3])
def test_more_clusters_than_vectors_are_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"2 vectors cannot have {k} clusters"):
        fit(np.eye(2, dtype=np.float32), k)
