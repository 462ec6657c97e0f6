"""AMI and purity of clusters of labeled texts: ours, faiss and MiniBatchKMeans on the same vectors.

Also one level of clusters beside two, and vectors of LSA beside means of word vectors.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from rich.console import Console
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from bench.clusters.labeled import Labeled, packages, topics
from bench.harness import Report, Row, at_least, table
from bench.peers import FAISS, FLORET
from factory import _native
from factory.clusters.sizes import clusters_by_cell
from factory.models.embedders import DIMENSIONS
from factory.models.lsa import BITS, bfloat16, fit_projection
from spark_udfs.clusters.kmeans import ROUNDS, Vectors, assign, fit

SEEDS = range(5)
CELLS = 20  # of two levels
AS_GOOD = 0.01  # of AMI
Labels = npt.NDArray[np.integer[Any]]

CAVEATS = [
    "As many clusters as labels. AMI is 0 for chance, purity is not; both are means of five seeds, and the "
    "CPU seconds are those of a fit on one thread.",
    "faiss runs plain k-means of as many rounds as ours, scikit-learn MiniBatchKMeans by its defaults.",
    "Word vectors: CBOW of fastText without parts of words, trained on the same texts; weighted means "
    "without the common direction.",
]


@dataclass(frozen=True)
class Quality:
    """Means of AMI, purity and CPU seconds over the seeds."""

    ami: float
    purity: float
    cpu_s: float


def measure(progress: Console) -> Report:
    """Compare clusters with labels."""
    corpora = {"topics": topics(), "packages": packages()}
    sizes = (
        f"{name}: {len(corpus.texts):,} texts, {corpus.n_labels} labels" for name, corpus in corpora.items()
    )
    report = Report(CAVEATS, "; ".join(sizes))
    with threadpool_limits(1):
        for name, corpus in corpora.items():
            _add(report, name, corpus, progress)
    return report


def _add(report: Report, name: str, corpus: Labeled, progress: Console) -> None:
    k, labels = corpus.n_labels, corpus.labels
    progress.print(f"{name}: LSA")
    vectors, lsa_s = _lsa(corpus.texts)
    progress.print(f"{name}: word vectors")
    word_vectors, words_s = _word_vectors(corpus.texts, progress)
    progress.print(f"{name}: clusters")
    qualities = {
        "ours": _quality(labels, (_ours(vectors, k, seed) for seed in SEEDS)),
        "ours, two levels": _quality(labels, (_two_levels(vectors, k, seed) for seed in SEEDS)),
        "faiss": _quality(labels, _faiss(vectors, k, progress)),
        "MiniBatchKMeans": _quality(labels, (_mini_batch(vectors, k, seed) for seed in SEEDS)),
        "ours on word vectors": _quality(labels, (_ours(word_vectors, k, seed) for seed in SEEDS)),
    }
    title = f"{name}: {k} clusters; CPU s: LSA {lsa_s:.1f}, words {words_s:.1f}"
    rows = table(title, " | AMI | purity | CPU s")
    for method, quality in qualities.items():
        rows.add_row(method, f"{quality.ami:.3f}", f"{quality.purity:.3f}", f"{quality.cpu_s:.2f}")
    report.tables.append(rows)
    best = max(qualities[peer].ami for peer in ("faiss", "MiniBatchKMeans"))
    ours, words = qualities["ours"].ami, qualities["ours on word vectors"].ami
    report.rows += [
        at_least(f"clusters.{name}.ami_beside_best_peer", round(ours - best, 4), "AMI", -AS_GOOD),
        at_least(f"clusters.{name}.ami_beside_word_vectors", round(ours - words, 4), "AMI", 0),
        Row(f"clusters.{name}.ami", round(ours, 4), "AMI"),
        Row(f"clusters.{name}.ami_two_levels", round(qualities["ours, two levels"].ami, 4), "AMI"),
    ]


def _quality(labels: Labels, fits: Iterable[tuple[Labels, float]]) -> Quality:
    rows = [
        (adjusted_mutual_info_score(labels, numbers), _purity(labels, numbers), cpu_s)
        for numbers, cpu_s in fits
    ]
    return Quality(*np.mean(rows, axis=0).tolist())


def _purity(labels: Labels, numbers: Labels) -> float:
    return float(contingency_matrix(labels, numbers).max(axis=0).sum() / len(labels))


def _ours(vectors: Vectors, k: int, seed: int) -> tuple[Labels, float]:
    return _timed(lambda: assign(vectors, fit(vectors, k, seed))[0])


def _two_levels(vectors: Vectors, k: int, seed: int) -> tuple[Labels, float]:
    """The numbers of cells, then of clusters in each, as `factory.clusters` cuts them."""

    def numbers() -> Labels:
        cells, _ = assign(vectors, fit(vectors, CELLS, seed))
        n_clusters = clusters_by_cell(np.bincount(cells, minlength=CELLS), k)
        clusters = np.zeros(len(vectors), np.int64)
        for cell in range(CELLS):
            [members] = np.nonzero(cells == cell)
            inside, _ = assign(vectors[members], fit(vectors[members], int(n_clusters[cell]), seed))
            clusters[members] = int(n_clusters[:cell].sum()) + inside
        return clusters

    return _timed(numbers)


def _mini_batch(vectors: Vectors, k: int, seed: int) -> tuple[Labels, float]:
    return _timed(lambda: MiniBatchKMeans(k, random_state=seed).fit(vectors).labels_)


def _timed(numbers: Callable[[], Labels]) -> tuple[Labels, float]:
    began = time.process_time()
    return numbers(), time.process_time() - began


def _faiss(vectors: Vectors, k: int, progress: Console) -> list[tuple[Labels, float]]:
    with tempfile.TemporaryDirectory(prefix="bench-clusters-") as folder:
        file, numbers = Path(folder) / "vectors.npy", Path(folder) / "numbers.npy"
        np.save(file, vectors)
        arguments = (file, k, ROUNDS, numbers, *SEEDS)
        seconds = FAISS.answer("bench.clusters.faiss_peer", *arguments, console=progress)
        return list(zip(np.load(numbers), seconds, strict=True))


def _lsa(texts: list[str]) -> tuple[Vectors, float]:
    began = time.process_time()
    column = pa.array(texts)
    projection = fit_projection(column, DIMENSIONS)
    rows = _native.LsaModel(BITS, bfloat16(projection).tobytes()).embed(column).to_numpy()
    return rows.reshape(len(texts), -1), time.process_time() - began


def _word_vectors(texts: list[str], progress: Console) -> tuple[Vectors, float]:
    with tempfile.TemporaryDirectory(prefix="bench-clusters-") as folder:
        file, vectors = Path(folder) / "texts.json", Path(folder) / "vectors.npy"
        file.write_text(json.dumps(texts))
        seconds = FLORET.answer("bench.clusters.word_vectors", file, vectors, DIMENSIONS, console=progress)
        return np.load(vectors), float(seconds)
