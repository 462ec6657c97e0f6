"""Cells: the coarse clusters of a dataset, `clusters.<dataset>_coarse`.

The centers are fitted on the driver, to a sample by hash of 256 vectors a cell and a million at most. One
pass through Spark then finds the cell of every document, and with it the size of each cell and the documents
of the least hashes: they are its examples, and their texts give its terms.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from factory.clusters.assignment import in_cells
from factory.clusters.sizes import n_cells
from factory.clusters.terms import MOST_TEXTS, terms_by
from factory.lake.schemas.clusters import COARSE
from factory.models.sampling import unit_interval
from spark_udfs.clusters.assignment import UNKNOWN
from spark_udfs.clusters.kmeans import Vectors, fit
from spark_udfs.clusters.vectors import binary, matrix

SAMPLED_OF_CELL = 256
MOST_SAMPLED = 1 << 20
MOST_NUMBERS = 1 << 28  # of the sampled vectors together: a gigabyte
N_EXAMPLES = 20
_CANDIDATES = 4 * MOST_TEXTS  # of a cell, by their hashes: fewer than MOST_TEXTS are never among them


def coarse_table(vectors: DataFrame, documents: DataFrame, cells: int | None = None) -> DataFrame:
    """Return COARSE: the cells of `vectors` (VECTORS), and cell -1 of the documents without a vector.

    `documents` (doc_id, text) have the texts. There are fewer than `cells` if the vectors have fewer distinct
    values. Runs a few jobs, and fits on the driver. Raises ConfigurationError for more cells than documents,
    and if no document has a vector.
    """
    [size] = vectors.agg(
        F.count("vector").alias("n_known"), F.max(F.octet_length("vector")).alias("n_bytes")
    ).collect()
    k = n_cells(size.n_known, cells)
    n_sampled = min(SAMPLED_OF_CELL * k, MOST_SAMPLED, max(2 * k, MOST_NUMBERS * 4 // size.n_bytes))
    centroids = fit(_sample(vectors, n_sampled / size.n_known), k)
    rows = vectors.select("doc_id", unit_interval().alias("unit"), "vector")
    members = in_cells(rows, centroids, "doc_id", "unit").localCheckpoint()
    counts = members.groupBy("cell").agg(F.count("*").alias("n_documents")).localCheckpoint()
    first = _first(members, counts).localCheckpoint()
    terms = terms_by("cell", documents.join(F.broadcast(first), "doc_id"))
    table = _rows(centroids, counts.toArrow(), first.toArrow(), terms.toArrow())
    return vectors.sparkSession.createDataFrame(table)


def _sample(vectors: DataFrame, share: float) -> Vectors:
    """The vectors with a hash below `share`, in the order of their hashes."""
    rows = vectors.where("vector IS NOT NULL").withColumn("unit", unit_interval())
    sample = rows.where(F.col("unit") < share).select("unit", "doc_id", "vector").toArrow()
    by_hash = sample.sort_by([("unit", "ascending"), ("doc_id", "ascending")])
    return matrix(by_hash["vector"].combine_chunks())


def _first(members: DataFrame, counts: DataFrame) -> DataFrame:
    """(cell, doc_id, place) of the MOST_TEXTS documents of the least hashes of each cell."""
    place = F.row_number().over(Window.partitionBy("cell").orderBy("unit", "doc_id"))
    candidates = members.join(F.broadcast(counts), "cell").where(
        F.col("unit") * F.col("n_documents") < _CANDIDATES
    )
    return candidates.select("cell", "doc_id", place.alias("place")).where(F.col("place") <= MOST_TEXTS)


def _rows(centroids: Vectors, counts: pa.Table, first: pa.Table, terms: pa.Table) -> pa.Table:
    """Rows of COARSE. A center without documents is left out, so the others are numbered anew."""
    n_documents = _by_cell(counts, "n_documents")
    terms_of_cells = _by_cell(terms, "terms")
    examples: dict[int, list[str]] = {}
    for row in first.sort_by([("cell", "ascending"), ("place", "ascending")]).to_pylist():
        examples.setdefault(row["cell"], []).append(row["doc_id"])
    cells = sorted(n_documents.keys() - {UNKNOWN})
    numbers = [UNKNOWN, *cells]
    columns = {
        "cell": pa.array([UNKNOWN, *range(len(cells))], pa.int32()),
        "centroid": pa.concat_arrays([pa.nulls(1, pa.binary()), binary(centroids[cells])]),
        "n_documents": pa.array([n_documents.get(number, 0) for number in numbers]),
        "terms": pa.array([terms_of_cells.get(number, []) for number in numbers], pa.list_(pa.string())),
        "examples": pa.array(
            [examples.get(number, [])[:N_EXAMPLES] for number in numbers], pa.list_(pa.string())
        ),
        "partition": pa.nulls(len(numbers), pa.string()),
    }
    return pa.table(columns).cast(COARSE.columns)


def _by_cell(rows: pa.Table, name: str) -> dict[int, object]:
    return dict(zip(rows["cell"].to_pylist(), rows[name].to_pylist(), strict=True))
