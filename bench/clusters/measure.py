"""Clusters beside faiss and scikit-learn: how well they tell topics apart, and what they cost.

`kmeans` compares labeled topics and packages with their clusters, `assignment` times the nearest of 15,000
centroids beside a plain loop over BLAS, `scale` cuts and assigns a million vectors through Spark, and
`verdicts` judges planted clusters. A part runs alone as `make bench NAME=clusters.<part>`.
"""

from __future__ import annotations

from bench.clusters import assignment, kmeans, scale, verdicts

PARTS = {
    "kmeans": kmeans.measure,
    "assignment": assignment.measure,
    "scale": scale.measure,
    "verdicts": verdicts.measure,
}
