"""Spherical k-means in numpy: the same clusters on any number of cores, threads and batches.

Vectors and centroids have length one, and the nearest centroid has the largest cosine. BLAS adds the
products of a cosine in an order that depends on the machine, its threads and the shape of a batch, so BLAS
alone decides nothing here:

- Seeds (k-means++, Arthur and Vassilvitskii 2007) are drawn by distances between vectors rounded to a grid.
  Their products are whole numbers below 2^24, which float32 adds without an error in any order.
- A nearest centroid is taken from BLAS if no other comes within the error of a float32 sum. Otherwise
  float64 sums in a fixed order decide, and the lower number wins a tie.
- Means are float64 sums in the order of the vectors.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Distances = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

ROUNDS = 20  # of Lloyd's algorithm, at most
SEEDING_POINTS = 10  # for each cluster, among which the seeds are drawn
CLOSE = 1e-5  # cosines: two centroids that differ by less are compared in float64
EQUAL = 1e-6  # one minus the cosine: vectors this near to their center never become a cluster of their own
_GRID = 4_000.0  # steps of one; with the rounding of 30,000 dimensions still below 2^12
_ROWS, _TILE = 1_024, 1_024  # 4 MB of cosines at once, which stay in a core's caches
_COSINES = 1 << 20  # of unclear vectors at once, whatever the number of centroids
_PRODUCTS = 1 << 17  # that are added at once: 1 MB


def fit(vectors: Vectors, k: int, seed: int = 0) -> Vectors:
    """Return the centroids (k', d) of at most `k` clusters of vectors (n, d) of length one.

    Fewer than `k` if the vectors have fewer distinct values. The order of the vectors matters.
    Raises ValueError unless there are as many vectors as clusters.
    """
    if not 1 <= k <= len(vectors):
        raise ValueError(f"{len(vectors)} vectors cannot have {k} clusters")
    vectors = np.ascontiguousarray(vectors, np.float32)
    centroids = vectors[_seeds(vectors, k, seed)]
    numbers = _nearest(vectors, centroids)
    for _ in range(ROUNDS):
        centroids = _means(vectors, numbers, centroids)
        numbers, previous = _nearest(vectors, centroids), numbers
        if np.array_equal(numbers, previous):
            break
    return centroids[np.unique(numbers)]


def assign(vectors: Vectors, centroids: Vectors) -> tuple[Numbers, Distances]:
    """Return the number of each vector's nearest centroid, and one minus their cosine.

    Vectors (n, d) and centroids (k, d) have length one. A row of the result depends on its vector alone.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    centroids = np.ascontiguousarray(centroids, np.float32)
    numbers = _nearest(vectors, centroids)
    return numbers, _distances(vectors, centroids, numbers)


def _nearest(vectors: Vectors, centroids: Vectors) -> Numbers:
    margin = np.float32(max(CLOSE, 2 * (vectors.shape[1] + 2) * 2.0**-24))  # of two sums of d products
    numbers = np.empty(len(vectors), np.int32)
    for begin in range(0, len(vectors), _ROWS):
        block = vectors[begin : begin + _ROWS]
        best, lead = _best(block, centroids)
        [unclear] = np.nonzero(lead <= margin)
        n_rows = max(1, _COSINES // len(centroids))
        for first in range(0, len(unclear), n_rows):
            rows = unclear[first : first + n_rows]
            best[rows] = _best_in_float64(block[rows], centroids, margin)
        numbers[begin : begin + _ROWS] = best
    return numbers


def _best(vectors: Vectors, centroids: Vectors) -> tuple[Numbers, Vectors]:
    """The centroid of the largest cosine of each vector by BLAS, and its lead over the second."""
    rows = np.arange(len(vectors))
    best = np.zeros(len(vectors), np.int32)
    largest = np.full(len(vectors), -np.inf, np.float32)
    second = largest.copy()
    for begin in range(0, len(centroids), _TILE):
        cosines = vectors @ centroids[begin : begin + _TILE].T
        in_tile = cosines.argmax(axis=1)
        largest_in_tile = cosines[rows, in_tile]
        cosines[rows, in_tile] = -np.inf
        second = np.maximum(second, cosines.max(axis=1))
        second = np.maximum(second, np.minimum(largest, largest_in_tile))
        better = largest_in_tile > largest
        best[better] = in_tile[better] + begin
        largest = np.maximum(largest, largest_in_tile)
    return best, largest - second


def _best_in_float64(vectors: Vectors, centroids: Vectors, margin: np.float32) -> Places:
    cosines = vectors @ centroids.T
    rows, candidates = np.nonzero(cosines >= cosines.max(axis=1, keepdims=True) - margin)
    exact = _cosines(vectors, rows, centroids, candidates)
    order = np.lexsort((candidates, -exact, rows))
    firsts = np.searchsorted(rows, np.arange(len(vectors)))
    return candidates[order[firsts]]


def _distances(vectors: Vectors, centroids: Vectors, numbers: Numbers) -> Distances:
    cosines = _cosines(vectors, np.arange(len(vectors)), centroids, numbers)
    return np.maximum(1 - cosines, 0)


def _cosines(vectors: Vectors, rows: Places, centroids: Vectors, numbers: Places | Numbers) -> Distances:
    """The cosines of pairs of vectors and centroids, as float64 sums in a fixed order."""
    cosines = np.empty(len(rows))
    n_pairs = max(1, _PRODUCTS // vectors.shape[1])
    for begin in range(0, len(rows), n_pairs):
        pairs = slice(begin, begin + n_pairs)
        products = vectors[rows[pairs]].astype(np.float64)
        products *= centroids[numbers[pairs]]
        cosines[pairs] = _sums(products)
    return cosines


def _sums(rows: Distances) -> Distances:
    """The sum of each row: the halves are added until one column remains."""
    while (width := rows.shape[1]) > 1:
        half = width // 2
        sums = rows[:, :half] + rows[:, half : 2 * half]
        if width % 2:
            sums[:, 0] += rows[:, -1]
        rows = sums
    return rows[:, 0]


def _seeds(vectors: Vectors, k: int, seed: int) -> Places:
    """Rows of at most `k` distinct vectors, drawn among some of them if these have enough distinct ones."""
    bits = np.random.PCG64(seed)
    order = np.argsort(bits.random_raw(len(vectors)), kind="stable")
    draws = bits.random_raw(k * _n_trials(k)).reshape(k, -1)
    few = order[: SEEDING_POINTS * k]
    seeds = few[_plus_plus(vectors[few], draws)]
    if len(seeds) == k or len(few) == len(vectors):
        return seeds
    return order[_plus_plus(vectors[order], draws)]


def _n_trials(k: int) -> int:
    """Candidates for each seed, as many as scikit-learn draws."""
    return 2 + int(np.log(k))


def _plus_plus(vectors: Vectors, draws: npt.NDArray[np.uint64]) -> Places:
    """Rows drawn in proportion to their squared distance from those before, until all distances are 0.

    Of the candidates in a row of `draws` the seed is the one that leaves the least sum of distances.
    """
    grid = np.rint(vectors * np.float32(_GRID))
    lengths = np.einsum("ij,ij->i", grid, grid).astype(np.float64)

    def distances_from(rows: Places) -> Distances:
        products = (grid[rows] @ grid.T).astype(np.float64)
        return lengths + lengths[rows, np.newaxis] - 2 * products

    seeds = [int(draws[0, 0]) % len(vectors)]
    [distances] = distances_from(np.array(seeds))
    for of_seed in draws[1:]:
        bounds = np.cumsum(distances)  # whole numbers below 2^53
        if not bounds[-1]:
            break
        candidates = np.searchsorted(bounds, of_seed % np.uint64(bounds[-1]), side="right")
        trials = np.minimum(distances, distances_from(candidates))
        best = int(trials.sum(axis=1).argmin())
        seeds.append(int(candidates[best]))
        distances = trials[best]
    return np.array(seeds)


def _means(vectors: Vectors, numbers: Numbers, centroids: Vectors) -> Vectors:
    """The means of the clusters' vectors, at length one; an empty cluster splits the largest."""
    n_members = np.bincount(numbers, minlength=len(centroids))
    by_cluster = np.argsort(numbers, kind="stable")
    ends = np.cumsum(n_members)
    sums = np.zeros(centroids.shape)
    for number in np.flatnonzero(n_members):
        members = by_cluster[ends[number] - n_members[number] : ends[number]]
        sums[number] = vectors[members].sum(axis=0, dtype=np.float64)
    lengths = np.sqrt(_sums(sums * sums))
    centers = centroids.copy()
    means_exist = lengths > 0  # opposite vectors have no mean, and their centroid stays
    centers[means_exist] = sums[means_exist] / lengths[means_exist, np.newaxis]
    empty = np.flatnonzero(n_members == 0)
    if len(empty):
        splits = _splits(len(empty), numbers, n_members, _distances(vectors, centroids, numbers))
        centers[empty[: len(splits)]] = vectors[splits]
    return centers


def _splits(n_wanted: int, numbers: Numbers, n_members: Places, distances: Distances) -> list[int]:
    """The vectors farthest from their centroids, each from the cluster that is the largest by then."""
    sizes = n_members.copy()
    farthest: list[int] = []
    while len(farthest) < n_wanted and sizes.max() > 1:
        largest = int(sizes.argmax())
        members = np.flatnonzero(numbers == largest)
        row = int(members[distances[members].argmax()])
        if distances[row] > EQUAL:
            farthest.append(row)
            distances[row] = 0
            sizes[largest] //= 2
        else:
            sizes[largest] = 0
    return farthest
