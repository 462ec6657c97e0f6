"""Clusters beside faiss and scikit-learn: how well they tell topics apart, and what they cost.

`kmeans` compares labeled topics and packages with their clusters, `assignment` times the nearest of 15,000
centroids beside a plain loop over BLAS, and `scale` cuts and assigns a million vectors through Spark. A part
runs alone as `make bench NAME=clusters.<part>`.
"""

from __future__ import annotations

from bench.clusters import assignment, kmeans, scale

PARTS = {"kmeans": kmeans.measure, "assignment": assignment.measure, "scale": scale.measure}
