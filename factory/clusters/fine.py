"""Clusters: the fine clusters inside each cell, `clusters.<dataset>_fine`.

A sample by hash of each cell, 65,536 vectors at most, is centers in a worker, one cell after the other, so
neither the driver nor a worker holds more than one cell.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from factory.clusters.assignment import centroids_of, in_cells
from factory.clusters.sizes import clusters_by_cell
from factory.models.sampling import unit_interval
from spark_udfs.clusters.assignment import UNKNOWN
from spark_udfs.clusters.fine import CENTER_UNIT, fit_cells

Integers = npt.NDArray[np.int64]

MOST_SAMPLED = 1 << 16  # vectors of a cell
MOST_NUMBERS = 1 << 26  # of these vectors together: 256 MB in a worker


def fine_table(vectors: DataFrame, coarse: DataFrame, clusters: int | None = None) -> DataFrame:
    """Return FINE: the clusters of `vectors` (VECTORS) in the cells of `coarse` (COARSE), and cluster -1.

    Every cell has at least one, and fewer than its share if its vectors have fewer distinct values. Fits in
    Spark's workers, at once. Raises ConfigurationError for fewer `clusters` than cells, or more than
    documents.
    """
    cells = coarse.where(f"cell <> {UNKNOWN}")
    centroids = centroids_of(coarse)
    documents = in_cells(_known(vectors), centroids, "unit", "doc_id", "vector")
    # The cells may have grown since they were cut, so they are counted.
    sizes = documents.groupBy("cell").agg(F.count("*").alias("n_documents")).localCheckpoint()
    n_clusters = clusters_by_cell(_in_order(sizes, len(centroids)), clusters)
    most_vectors = min(MOST_SAMPLED, MOST_NUMBERS // centroids.shape[1])
    sample = _sample(documents, sizes, most_vectors)
    together = sample.unionByName(_centers(cells)).repartition("cell")
    function = partial(fit_cells, n_clusters=n_clusters, most_vectors=most_vectors)
    centers = (
        together.sortWithinPartitions("cell", "unit", "doc_id")
        .select("cell", "vector")
        .mapInArrow(function, "cell int, number int, centroid binary")
        .localCheckpoint()
    )
    return _numbered(centers)


def _known(vectors: DataFrame) -> DataFrame:
    return vectors.where("vector IS NOT NULL").withColumn("unit", unit_interval())


def _in_order(sizes: DataFrame, n_cells: int) -> Integers:
    """The documents of each cell, by number; 0 for a cell without any."""
    n_documents = np.zeros(n_cells, np.int64)
    table = sizes.toArrow()
    n_documents[table["cell"].to_numpy()] = table["n_documents"].to_numpy()
    return n_documents


def _sample(documents: DataFrame, sizes: DataFrame, n: int) -> DataFrame:
    """About `n` documents of each cell by their hashes; the worker takes the first `n`."""
    with_sizes = documents.join(F.broadcast(sizes), "cell")
    return with_sizes.where(F.col("unit") * F.col("n_documents") < n).drop("n_documents")


def _centers(cells: DataFrame) -> DataFrame:
    """The centers of the cells, each a row behind the documents of its cell."""
    return cells.select(
        *("cell", F.lit(CENTER_UNIT).alias("unit"), F.lit("").alias("doc_id")),
        F.col("centroid").alias("vector"),
    )


def _numbered(centers: DataFrame) -> DataFrame:
    """FINE: the clusters numbered over all cells, by cell, and cluster -1."""
    counts = centers.groupBy("cell").count().toArrow().sort_by("cell")
    first = np.concatenate([[0], np.cumsum(counts["count"].to_numpy())[:-1]])
    offsets = centers.sparkSession.createDataFrame(
        pa.table({"cell": counts["cell"], "first": pa.array(first, pa.int32())})
    )
    clusters = centers.join(F.broadcast(offsets), "cell").select(
        (F.col("first") + F.col("number")).alias("cluster"), "cell", "centroid"
    )
    without_vector = centers.sparkSession.createDataFrame(
        [(UNKNOWN, UNKNOWN, None)], "cluster int, cell int, centroid binary"
    )
    return clusters.unionByName(without_vector).withColumn("partition", F.lit(None).cast("string"))
