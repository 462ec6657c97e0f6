"""Cells and clusters of vectors, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from factory.errors import ConfigurationError
from spark_udfs.clusters.kmeans import Distances, Numbers, Vectors, assign
from spark_udfs.clusters.runs import groups
from spark_udfs.clusters.vectors import matrix

UNKNOWN = -1
"""The cell and the cluster of documents without a known token."""

NEAREST = pa.schema(
    [
        pa.field("doc_id", pa.string(), nullable=False),
        pa.field("cell", pa.int32(), nullable=False),
        pa.field("cluster", pa.int32(), nullable=False),
        pa.field("distance", pa.float64()),
        pa.field("partition", pa.string()),
    ]
)


def with_cells(
    batches: Iterator[pa.RecordBatch], *, centroids: Vectors, columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield `columns` of each batch, then `cell`: the nearest of `centroids` to its `vector`."""
    for batch in batches:
        cells, _ = _assigned(batch.column("vector"), centroids)
        arrays = [*(batch.column(name) for name in columns), pa.array(cells)]
        yield pa.RecordBatch.from_arrays(arrays, names=[*columns, "cell"])


def nearest_clusters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of NEAREST for the documents of each (cell, part), which follow the centroids of the cell.

    Rows are (cell, part, cluster, vector, doc_id, partition), sorted by cell and part; rows with a `cluster`
    are centroids and come first. Memory holds a batch and the centroids of one cell. Raises
    ConfigurationError for a cell without centroids, except -1, and for vectors of another length.
    """
    for _, pieces in groups(batches, "cell", "part"):
        centroids: list[pa.RecordBatch] = []
        for piece in pieces:
            n_centroids = piece.num_rows - piece.column("cluster").null_count
            if n_centroids:
                centroids.append(piece.slice(0, n_centroids))
            if n_centroids < piece.num_rows:
                centroids = [pa.concat_batches(centroids)] if centroids else []
                yield _nearest(piece.slice(n_centroids), *centroids)


def _nearest(documents: pa.RecordBatch, centroids: pa.RecordBatch | None = None) -> pa.RecordBatch:
    cell = documents.column("cell")[0].as_py()
    if cell == UNKNOWN:
        clusters = np.full(documents.num_rows, UNKNOWN, np.int32)
        distances = np.full(documents.num_rows, np.nan)
    elif centroids is None:
        raise ConfigurationError(
            f"Cell {cell} has no clusters. Cut the clusters again, in the cells as they are now."
        )
    else:
        nearest, distances = _assigned(documents.column("vector"), matrix(centroids.column("vector")))
        clusters = centroids.column("cluster").to_numpy()[nearest]
    columns = [
        *(documents.column("doc_id"), documents.column("cell")),
        *(pa.array(clusters, pa.int32()), pa.array(distances, mask=np.isnan(distances))),
        documents.column("partition"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=NEAREST)


def _assigned(vectors: pa.Array, centroids: Vectors) -> tuple[Numbers, Distances]:
    """The nearest centroids and their distances; UNKNOWN and NaN for null."""
    numbers = np.full(len(vectors), UNKNOWN, np.int32)
    distances = np.full(len(vectors), np.nan)
    present = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
    if len(present):
        rows = matrix(vectors.drop_null())
        if rows.shape[1] != centroids.shape[1]:
            raise ConfigurationError(
                f"The vectors have {rows.shape[1]:,} numbers and the centers {centroids.shape[1]:,}. Cut the "
                "cells and clusters again with the embedder of the vectors."
            )
        numbers[present], distances[present] = assign(rows, centroids)
    return numbers, distances
