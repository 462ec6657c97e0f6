"""The nearest of 15,000 centroids, exact in float64, beside a plain loop over BLAS; and the time of a fit.

The plain loop multiplies 1,024 vectors at once with all centroids and takes the largest cosine of each. Both
run on one thread, in turn, and the least CPU time of five counts.
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits

from bench.harness import Report, Row, at_most, table
from bench.timing import cpu_seconds
from factory.clusters.sizes import MOST_CELLS
from spark_udfs.clusters.kmeans import Numbers, Vectors, assign, fit

DIMENSIONS = 128
N_VECTORS = 16_384
N_FITTED, FITTED_CLUSTERS = 100_000, 300
FINE_CLUSTERS = 200  # of a cell, of three million in all
ROUNDS = 5
ROWS = 1_024
MOST_TIME = 1.2  # of the plain loop
CAVEATS = [
    "Random unit vectors around as many centers as centroids; one thread; least CPU seconds of five rounds, "
    "in turn.",
    "`assign` also gives exact distances, which the plain loop does not.",
    "Hours for a billion documents are reckoned from these rates, not measured; they leave Spark out.",
]


def measure(progress: Console) -> Report:
    """Time assignment and a fit. Raises WrongAnswer if float32 is clear and the numbers differ."""
    report = Report(CAVEATS, f"{N_VECTORS:,} vectors of {DIMENSIONS} numbers")
    speeds = table("Nearest centroid", "centroids | ours vectors/CPU s | plain loop | our time of theirs")
    rates = {}
    with threadpool_limits(1):
        for k in (FINE_CLUSTERS, MOST_CELLS):
            progress.print(f"{k:,} centroids")
            centroids, vectors = _planted(k, N_VECTORS)
            numbers, distances = assign(vectors, centroids)
            exact = np.einsum("ij,ij->i", vectors, centroids[numbers], dtype=np.float64)
            best = (vectors @ centroids.T).max(axis=1)
            report.check(
                f"no cosine of {k:,} is larger than the chosen one", bool((exact > best - 1e-5).all())
            )
            report.check(
                "distances are one minus the cosine", bool(np.allclose(distances, 1 - exact, atol=1e-12))
            )
            ours, plain = _seconds(vectors, centroids)
            ratio = ours / plain
            rates[k] = N_VECTORS / ours
            speeds.add_row(f"{k:,}", f"{rates[k]:,.0f}", f"{N_VECTORS / plain:,.0f}", f"{ratio:.2f}")
            report.rows += [
                Row(f"clusters.assignment.{k}", round(rates[k]), "vectors/CPU s"),
                at_most(f"clusters.assignment.{k}.beside_blas", round(ratio, 3), "x", MOST_TIME)
                if k == MOST_CELLS
                else Row(f"clusters.assignment.{k}.beside_blas", round(ratio, 3), "x"),
            ]
        progress.print("fit")
        _, vectors = _planted(FITTED_CLUSTERS, N_FITTED)
        fit_s = min(cpu_seconds(lambda: fit(vectors, FITTED_CLUSTERS), 2))
    report.tables.append(speeds)
    hours = 1e9 / rates[MOST_CELLS] / 3_600 + 1e9 / rates[FINE_CLUSTERS] / 3_600
    name = f"clusters.reckoned.core_hours.{MOST_CELLS}x{FINE_CLUSTERS}"
    report.rows += [
        Row(f"clusters.fit.{N_FITTED}x{DIMENSIONS}.k{FITTED_CLUSTERS}", round(fit_s, 2), "CPU s"),
        Row(name, round(hours, 1), "core hours for 1e9 vectors, reckoned"),
    ]
    return report


def _seconds(vectors: Vectors, centroids: Vectors) -> tuple[float, float]:
    """The least CPU seconds of `assign` and of the plain loop."""
    rounds = [
        (
            *cpu_seconds(lambda: assign(vectors, centroids), 1),
            *cpu_seconds(lambda: _plain(vectors, centroids), 1),
        )
        for _ in range(ROUNDS)
    ]
    ours, plain = np.min(rounds, axis=0).tolist()
    return ours, plain


def _planted(k: int, n: int) -> tuple[Vectors, Vectors]:
    """Centroids, and vectors around them."""
    chance = np.random.default_rng(3)
    centroids = _unit(chance.standard_normal((k, DIMENSIONS)))
    noise = chance.standard_normal((n, DIMENSIONS)) / np.sqrt(DIMENSIONS)
    return centroids, _unit(centroids[chance.integers(0, k, n)] + noise)


def _unit(rows: np.ndarray) -> Vectors:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def _plain(vectors: Vectors, centroids: Vectors) -> Numbers:
    numbers = np.empty(len(vectors), np.int32)
    for begin in range(0, len(vectors), ROWS):
        numbers[begin : begin + ROWS] = (vectors[begin : begin + ROWS] @ centroids.T).argmax(axis=1)
    return numbers
