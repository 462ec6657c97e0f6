"""The cell and cluster of every document, `clusters.<dataset>`, and the sizes of the cells now.

A vector is compared with the centers of the cells, which every worker has, and then with the clusters of its
cell alone. The clusters' centers and the vectors meet by cell, a large cell in several parts, so a worker
holds the centers of one cell, even of millions of clusters.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, StructType

from factory.lake.schemas.clusters import CLUSTERS
from spark_udfs.clusters.assignment import UNKNOWN, nearest_clusters, with_cells
from spark_udfs.clusters.kmeans import Vectors
from spark_udfs.clusters.vectors import matrix

PART_DOCUMENTS = 1 << 17


def assigned(vectors: DataFrame, coarse: DataFrame, fine: DataFrame) -> DataFrame:
    """Return CLUSTERS: the cell of each of `vectors` (VECTORS), the cluster in it, and the distance.

    `coarse` (COARSE) and `fine` (FINE) were cut from vectors of the same embedder. Documents without a vector
    are in cell and cluster -1. Reads the centers of the cells at once, and nothing else.
    """
    parts = coarse.select("cell", _n_parts().alias("n_parts"))
    documents = (
        in_cells(vectors, centroids_of(coarse), "doc_id", "partition", "vector")
        .join(F.broadcast(parts), "cell")
        .select(
            *("cell", F.pmod(F.xxhash64("doc_id"), "n_parts").cast("int").alias("part")),
            *(F.lit(None).cast("int").alias("cluster"), "vector", "doc_id", "partition"),
        )
    )
    every_part = F.explode(F.sequence(F.lit(0), F.col("n_parts") - 1)).alias("part")
    centers = (
        fine.where(f"cell <> {UNKNOWN}")
        .join(F.broadcast(parts), "cell")
        .select(
            *("cell", every_part, "cluster", F.col("centroid").alias("vector")),
            *(F.lit(None).cast("string").alias(name) for name in ("doc_id", "partition")),
        )
    )
    together = documents.unionByName(centers).repartition("cell", "part")
    by_place = together.sortWithinPartitions("cell", "part", F.asc_nulls_last("cluster"))
    return by_place.mapInArrow(nearest_clusters, from_arrow_schema(CLUSTERS.columns))


def cells_now(rows: DataFrame, coarse: DataFrame) -> DataFrame:
    """Return CELLS: the documents of each cell in `rows` (CLUSTERS), and their share when it was cut."""
    now = rows.groupBy("cell").agg(F.count("*").alias("n_now"))
    cells = coarse.select("cell", F.col("n_documents").alias("n_when_cut"))
    totals = now.agg(F.sum("n_now").alias("total_now")).crossJoin(
        cells.agg(F.sum("n_when_cut").alias("total_when_cut"))
    )
    return (
        cells.join(now, "cell", "left")
        .crossJoin(F.broadcast(totals))
        .select(
            *("cell", F.coalesce("n_now", F.lit(0)).alias("n_documents")),
            _share("n_now", "total_now").alias("share"),
            _share("n_when_cut", "total_when_cut").alias("share_when_cut"),
            F.lit(None).cast("string").alias("partition"),
        )
    )


def in_cells(rows: DataFrame, centroids: Vectors, *columns: str) -> DataFrame:
    """Return `columns` of `rows`, and `cell`: the nearest of `centroids` to `vector`, -1 for null."""
    find = partial(with_cells, centroids=centroids, columns=list(columns))
    schema = StructType([rows.schema[name] for name in columns]).add("cell", IntegerType())
    return rows.mapInArrow(find, schema)


def centroids_of(coarse: DataFrame) -> Vectors:
    """Return the centers of COARSE: row i is the center of cell i. Runs a job."""
    rows = coarse.where(f"cell <> {UNKNOWN}").select("cell", "centroid").toArrow().sort_by("cell")
    return matrix(rows["centroid"].combine_chunks())


def _n_parts() -> Column:
    return F.ceil(F.greatest("n_documents", F.lit(1)) / PART_DOCUMENTS).cast("int")


def _share(n: str, total: str) -> Column:
    return F.coalesce(F.col(n) / F.col(total), F.lit(0.0))
