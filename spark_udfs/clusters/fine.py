"""The clusters of each cell, fitted in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_udfs.clusters.kmeans import fit
from spark_udfs.clusters.runs import groups
from spark_udfs.clusters.vectors import binary, matrix

CENTER_UNIT = 2.0
"""The `unit` of the row with the center of a cell, which sorts behind every document."""

FITTED = pa.schema([("cell", pa.int32()), ("number", pa.int32()), ("centroid", pa.binary())])


def fit_cells(
    batches: Iterator[pa.RecordBatch], *, n_clusters: npt.NDArray[np.int64], most_vectors: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows of FITTED: the centroids of each cell, numbered from 0, at most `n_clusters[cell]` of them.

    Rows are (cell, unit, vector), sorted by cell and unit, and the last of a cell is its own center. Only
    the first `most_vectors` of a cell are used. Memory holds the vectors of one cell.
    """
    for (cell,), pieces in groups(batches, "cell"):
        vectors = np.concatenate([matrix(piece.column("vector")) for piece in pieces])
        members = vectors[: min(most_vectors, len(vectors) - 1)]
        centroids = fit(members, min(int(n_clusters[cell]), len(members))) if len(members) else vectors
        numbers = np.arange(len(centroids), dtype=np.int32)
        columns = [pa.array(np.full_like(numbers, cell)), pa.array(numbers), binary(centroids)]
        yield pa.RecordBatch.from_arrays(columns, schema=FITTED)
