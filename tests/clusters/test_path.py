"""Vectors to cells, clusters and the cluster of every document, through Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sklearn.metrics import adjusted_mutual_info_score

from factory.clusters import assignment, fine
from factory.clusters.assignment import assigned, cells_now
from factory.clusters.coarse import coarse_table
from factory.clusters.fine import fine_table
from factory.errors import ConfigurationError
from factory.lake.schemas.clusters import CELLS, CLUSTERS, COARSE, FINE, VECTORS
from spark_udfs.clusters.vectors import binary, matrix
from tests.clusters.planted import vectors_around_centers
from tests.frames import assert_declared

pytestmark = pytest.mark.spark

N, TOPICS, UNKNOWN_DOCUMENTS = 600, 8, 3
TABLES = ("coarse", "fine", "clusters", "cells")
VALUES, LABELS = vectors_around_centers(N, TOPICS)
IDS = [f"document{number:03}" for number in range(N)]


def tables(spark: SparkSession, n_partitions: int) -> dict[str, DataFrame]:
    nothing = [f"nothing{number}" for number in range(UNKNOWN_DOCUMENTS)]
    vectors = pa.table(
        {
            "doc_id": [*IDS, *nothing],
            "vector": pa.concat_arrays([binary(VALUES), pa.nulls(len(nothing), pa.binary())]),
            "partition": pa.nulls(N + len(nothing), pa.string()),
        }
    ).cast(VECTORS.columns)
    texts = {
        "doc_id": [*IDS, *nothing],
        "text": [*(f"the topic{label} word word{place}" for place, label in enumerate(LABELS)), *nothing],
    }
    rows = spark.createDataFrame(vectors).repartition(n_partitions)
    documents = spark.createDataFrame(pa.table(texts)).repartition(n_partitions)
    coarse = coarse_table(rows, documents, TOPICS)
    clusters = fine_table(rows, coarse, 24)
    of_documents = assigned(rows, coarse, clusters)
    return dict(zip(TABLES, (coarse, clusters, of_documents, cells_now(of_documents, coarse)), strict=True))


def arrow(frame: DataFrame) -> pa.Table:
    """The rows in the order of their ids or numbers."""
    return frame.toArrow().sort_by([(frame.columns[0], "ascending")]).combine_chunks()


def test_one_and_eight_partitions_make_the_same_tables(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment, "PART_DOCUMENTS", 20)  # so that every cell has several parts
    monkeypatch.setattr(fine, "MOST_SAMPLED", 50)  # and more documents than its sample
    of_one, of_eight = tables(spark, 1), tables(spark, 8)
    for name, schema in zip(TABLES, (COARSE, FINE, CLUSTERS, CELLS), strict=True):
        assert_declared(of_one[name], schema)
        assert arrow(of_one[name]).equals(arrow(of_eight[name])), name

    clusters = arrow(of_one["clusters"])
    assert clusters["doc_id"].to_pylist()[:N] == IDS
    assert adjusted_mutual_info_score(LABELS, clusters["cell"].to_numpy()[:N]) > 0.95
    rows = arrow(of_one["fine"]).to_pylist()
    assert [row["cluster"] for row in rows] == list(range(-1, 24))
    assert [row["cell"] for row in rows] == sorted(row["cell"] for row in rows)
    centers = matrix(arrow(of_one["fine"])["centroid"].drop_null().combine_chunks()).astype(np.float64)
    cell_of_cluster = np.array([row["cell"] for row in rows[1:]])
    cosines = VALUES.astype(np.float64) @ centers.T
    for place, (cell, cluster) in enumerate(
        zip(clusters["cell"].to_pylist(), clusters["cluster"].to_pylist(), strict=True)
    ):
        if place < N:
            inside = np.flatnonzero(cell_of_cluster == cell)
            assert cluster == inside[cosines[place, inside].argmax()]
            assert clusters["distance"][place].as_py() == pytest.approx(
                1 - cosines[place, cluster], abs=1e-12
            )
        else:
            assert (cell, cluster, clusters["distance"][place].as_py()) == (-1, -1, None)

    cells = arrow(of_one["coarse"]).to_pylist()
    assert cells[0]["n_documents"] == UNKNOWN_DOCUMENTS
    assert sum(row["n_documents"] for row in cells) == N + UNKNOWN_DOCUMENTS
    for row in cells[1:]:
        members = [LABELS[int(doc_id[-3:])] for doc_id in row["examples"]]
        assert len(members) == 20
        assert row["terms"][0] == f"topic{np.bincount(members).argmax()}"
    for row in arrow(of_one["cells"]).to_pylist():
        assert row["share"] == row["share_when_cut"]


def test_more_cells_than_documents_are_refused(spark: SparkSession) -> None:
    vectors = spark.createDataFrame(
        [("a", b"\0\0\x80\x3f", None)], "doc_id string, vector binary, partition string"
    )
    documents = spark.createDataFrame([("a", "a text")], "doc_id string, text string")
    with pytest.raises(ConfigurationError, match="1 documents cannot have 2 cells"):
        coarse_table(vectors, documents, 2)
    coarse = coarse_table(vectors, documents)
    with pytest.raises(ConfigurationError, match="1 documents cannot have 2 clusters"):
        fine_table(vectors, coarse, 2)
    with pytest.raises(ConfigurationError, match="nothing to cluster"):
        coarse_table(vectors.where("doc_id = 'b'"), documents)
