"""What workers do with batches: cells, clusters of a cell, and the centroids rows_of_cells in it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from factory.errors import ConfigurationError
from spark_udfs.clusters.assignment import nearest_clusters, with_cells
from spark_udfs.clusters.fine import fit_cells
from spark_udfs.clusters.kmeans import assign, fit
from spark_udfs.clusters.runs import groups
from spark_udfs.clusters.vectors import binary, matrix
from tests.clusters.planted import vectors_around_centers

VECTORS, _ = vectors_around_centers(40, 4, 6)


def batches_of(table: pa.Table, rows: int) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(max_chunksize=rows)


def test_vectors_survive_the_column_of_bytes() -> None:
    assert np.array_equal(matrix(binary(VECTORS)), VECTORS)
    assert np.array_equal(matrix(binary(VECTORS)[3:9]), VECTORS[3:9])
    assert matrix(binary(VECTORS[:0])).shape == (0, 0)


def test_vectors_of_several_lengths_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="One vector has 5 numbers and another has 6"):
        matrix(pa.concat_arrays([binary(VECTORS), binary(VECTORS[:, :5])]))


def test_vectors_of_another_embedder_than_that_of_the_cells_are_refused() -> None:
    batch = pa.record_batch({"vector": binary(VECTORS)})
    with pytest.raises(ConfigurationError, match="6 numbers and the centers 5"):
        list(with_cells(iter([batch]), centroids=VECTORS[:2, :5], columns=[]))


def test_a_document_without_a_vector_is_in_no_cell() -> None:
    vectors = pa.concat_arrays([pa.nulls(2, pa.binary()), binary(VECTORS[:3])])
    batch = pa.record_batch({"doc_id": list("abcde"), "vector": vectors})
    [cells] = with_cells(iter([batch]), centroids=VECTORS[:3], columns=["doc_id"])
    assert cells.to_pydict() == {"doc_id": list("abcde"), "cell": [-1, -1, 0, 1, 2]}


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_groups_of_sorted_batches_are_whole_whatever_the_batches(rows: int) -> None:
    table = pa.table({"cell": [0, 0, 0, 2, 2, 5], "part": [0, 0, 1, 1, 1, 1], "row": list(range(6))})
    pieces = {
        key: [row for piece in batches for row in piece["row"].to_pylist()]
        for key, batches in groups(batches_of(table, rows), "cell", "part")
    }
    assert pieces == {(0, 0): [0, 1], (0, 1): [2], (2, 1): [3, 4], (5, 1): [5]}


@pytest.mark.parametrize("rows", [1, 7, 1_000])
def test_documents_meet_the_clusters_of_their_cell_alone(rows: int) -> None:
    """Cell 0 has two clusters, cell 1 three, cell -1 none."""
    centers = {0: VECTORS[:2], 1: VECTORS[2:5]}
    columns = []
    for cell, members in ((-1, None), (0, VECTORS[5:20]), (1, VECTORS[20:])):
        n = 2 if members is None else len(members)
        if cell >= 0:
            numbers = pa.array(range(2) if cell == 0 else range(2, 5), pa.int32())
            columns.append((cell, numbers, binary(centers[cell]), pa.nulls(len(numbers), pa.string())))
        vectors = pa.nulls(n, pa.binary()) if members is None else binary(members)
        columns.append(
            (cell, pa.nulls(n, pa.int32()), vectors, pa.array([f"{cell}/{row}" for row in range(n)]))
        )
    table = pa.concat_tables(
        pa.table(
            {
                "cell": pa.array([cell] * len(ids), pa.int32()),
                "part": pa.array([0] * len(ids), pa.int32()),
                "cluster": clusters,
                "vector": vectors,
                "doc_id": ids,
                "partition": pa.nulls(len(ids), pa.string()),
            }
        )
        for cell, clusters, vectors, ids in columns
    )
    nearest = pa.Table.from_batches(nearest_clusters(iter(batches_of(table, rows)))).to_pydict()
    clusters_expected = [-1, -1]
    clusters_expected += assign(VECTORS[5:20], centers[0])[0].tolist()
    clusters_expected += (assign(VECTORS[20:], centers[1])[0] + 2).tolist()
    assert nearest["cluster"] == clusters_expected
    assert nearest["cell"] == [-1] * 2 + [0] * 15 + [1] * 20
    assert nearest["distance"][:2] == [None, None]
    assert min(nearest["distance"][2:]) >= 0


def cells_and_centers(rows: int) -> list[pa.RecordBatch]:
    """Cell 0 with twenty vectors, cell 2 with none; the last row of each is its center."""
    cells = [0] * 21 + [2]
    vectors = binary(np.concatenate([VECTORS[:20], VECTORS[39:], VECTORS[38:39]]))
    return batches_of(pa.table({"cell": pa.array(cells, pa.int32()), "vector": vectors}), rows)


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_a_cell_is_fitted_to_its_first_vectors_without_its_center(rows: int) -> None:
    sizes = np.array([3, 0, 5])
    rows_of_cells = pa.Table.from_batches(
        fit_cells(iter(cells_and_centers(rows)), n_clusters=sizes, most_vectors=12)
    ).to_pydict()
    assert rows_of_cells["cell"] == [0, 0, 0, 2]
    assert rows_of_cells["number"] == [0, 1, 2, 0]
    assert np.array_equal(matrix(pa.array(rows_of_cells["centroid"][:3])), fit(VECTORS[:12], 3))
    assert rows_of_cells["centroid"][3] == VECTORS[38].tobytes()


def test_a_cell_has_no_more_clusters_than_vectors() -> None:
    batches = cells_and_centers(100)
    rows_of_cells = pa.Table.from_batches(
        fit_cells(iter(batches), n_clusters=np.array([50, 0, 5]), most_vectors=100)
    )
    assert rows_of_cells["cell"].to_pylist() == [0] * 20 + [2]


def test_a_cell_without_clusters_is_an_error() -> None:
    """Clusters were cut in other cells, for example."""
    columns = {
        "cell": pa.array([3], pa.int32()),
        "part": pa.array([0], pa.int32()),
        "cluster": pa.nulls(1, pa.int32()),
        "vector": binary(VECTORS[:1]),
        "doc_id": ["a"],
        "partition": pa.nulls(1, pa.string()),
    }
    with pytest.raises(ConfigurationError, match="Cell 3 has no clusters"):
        list(nearest_clusters(iter([pa.record_batch(columns)])))
