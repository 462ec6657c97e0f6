"""Spherical and plain k-means of faiss; run in its environment.

Arguments: a `.npy` file of vectors, the number of clusters, the rounds, a file for the numbers, and the
seeds. Prints one JSON line: the CPU seconds of each fit.
"""

from __future__ import annotations

import json
import sys
import time

import faiss
import numpy as np


def main(vectors_file: str, k: str, rounds: str, numbers_file: str, *seeds: str) -> None:
    vectors = np.load(vectors_file)
    faiss.omp_set_num_threads(1)
    numbers, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        model = faiss.Kmeans(
            vectors.shape[1], int(k), niter=int(rounds), seed=int(seed), min_points_per_centroid=1
        )
        model.train(vectors)
        seconds.append(time.process_time() - began)
        numbers.append(model.index.search(vectors, 1)[1][:, 0])
    np.save(numbers_file, np.stack(numbers))
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
