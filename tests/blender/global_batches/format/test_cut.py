"""Batches cut for a mesh: every rank puts its own part together again, by one or two reads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.global_batches.errors import InvalidBatch
from blender.global_batches.format.columns import Array
from blender.global_batches.format.cut import ChunkLayout, chunks_of, cut, joined
from blender.global_batches.format.footer import Footer
from blender.global_batches.format.slices import encode
from blender.spec.mesh import Mesh

LAYOUTS: tuple[ChunkLayout, ...] = ("zigzag", "contiguous")
layouts = st.sampled_from(LAYOUTS)


def numbered(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def read_by(rank: int, mesh: Mesh, layout: ChunkLayout, body: bytes) -> dict[str, Array]:
    """What a rank reads of an object."""
    footer, place = Footer.of_object(body, "a"), mesh.coordinate(rank)
    parts = []
    for chunk in chunks_of(place.cp, mesh.cp, layout):
        offset, length = footer.range_of(place.dp, chunk)
        parts.append(footer.decode(place.dp, chunk, body[offset : offset + length]))
    return joined(parts, footer.sequence)


@given(
    mesh=st.builds(Mesh, dp=st.integers(1, 4), cp=st.integers(1, 4), tp=st.integers(1, 2)),
    layout=layouts,
    rows=st.integers(0, 3),
    length=st.integers(0, 3),
)
def test_what_the_ranks_join_is_the_batch(mesh: Mesh, layout: ChunkLayout, rows: int, length: int) -> None:
    rows, length = rows * mesh.dp, length * 2 * mesh.cp
    columns = {
        "tokens": numbered(rows, length),
        "boxes": numbered(rows, length, 2),
        "ids": numbered(rows),
        "images": numbered(rows, 3, 5),
    }
    body = encode(cut(columns, mesh, sequence=["tokens", "boxes"])).body
    by_place = {
        (place.dp, place.cp): read_by(rank, mesh, layout, body)
        for rank in range(mesh.ranks)
        if (place := mesh.coordinate(rank)).tp == 0
    }
    # The order of the sequence's chunks among the ranks, from the definition of the layouts.
    order = [chunk for cp in range(mesh.cp) for chunk in chunks_of(cp, mesh.cp, layout)]
    for dp in range(mesh.dp):
        of_dp = slice(dp * rows // mesh.dp, (dp + 1) * rows // mesh.dp)
        ranks = [by_place[dp, cp] for cp in range(mesh.cp)]
        for name in ("ids", "images"):
            for columns_of_rank in ranks:
                np.testing.assert_array_equal(columns_of_rank[name], columns[name][of_dp])
        for name in ("tokens", "boxes"):
            chunks = np.split(np.concatenate([part[name] for part in ranks], axis=1), len(order), axis=1)
            whole = np.concatenate([chunks[order.index(i)] for i in range(len(order))], axis=1)
            np.testing.assert_array_equal(whole, columns[name][of_dp])


def test_layouts_of_a_sequence_of_two_ranks_written_out() -> None:
    tokens, ids = np.arange(8).reshape(1, 8), np.array([7])
    body = encode(cut({"tokens": tokens, "ids": ids}, Mesh(cp=2), sequence={"tokens"})).body
    tokens_read = {
        layout: [read_by(rank, Mesh(cp=2), layout, body)["tokens"].tolist() for rank in range(2)]
        for layout in LAYOUTS
    }
    assert tokens_read == {
        "zigzag": [[[0, 1, 6, 7]], [[2, 3, 4, 5]]],
        "contiguous": [[[0, 1, 2, 3]], [[4, 5, 6, 7]]],
    }


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("cp", range(1, 9))
def test_each_chunk_has_one_rank_and_each_rank_one_even_chunk(cp: int, layout: ChunkLayout) -> None:
    chunks = [chunks_of(index, cp, layout) for index in range(cp)]
    assert sorted(sum(chunks, ())) == list(range(1 if cp == 1 else 2 * cp))
    assert [sum(chunk % 2 == 0 for chunk in of_rank) for of_rank in chunks] == [1] * cp


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sixteen_ranks_ask_for_four_sets_of_slices(layout: ChunkLayout) -> None:
    mesh = Mesh(tp=2, pp=2, dp=2, cp=2)
    places = [mesh.coordinate(rank) for rank in range(mesh.ranks)]
    requests = [(place.dp, chunks_of(place.cp, mesh.cp, layout)) for place in places]
    assert len(requests) == 16
    expected = {(0, 3), (1, 2)} if layout == "zigzag" else {(0, 1), (2, 3)}
    assert set(requests) == set(product(range(2), expected))


def test_a_column_without_a_sequence_is_stored_once_for_each_cp_index() -> None:
    ids = numbered(8, 64)
    with pytest.raises(
        InvalidBatch, match="`sequence` is not given, and the mesh pp=1,dp=2,cp=4,tp=1 divides"
    ):
        cut({"ids": ids}, Mesh(dp=2, cp=4))
    slices = cut({"ids": ids}, Mesh(dp=2, cp=4), sequence=())
    assert sum(arrays["ids"].nbytes for arrays in slices.arrays if "ids" in arrays) == 4 * ids.nbytes


def test_cutting_copies_nothing() -> None:
    tokens = numbered(4, 8)
    slices = cut({"tokens": tokens}, Mesh(dp=2, cp=2), sequence=["tokens"])
    assert all(np.shares_memory(arrays["tokens"], tokens) for arrays in slices.arrays)


def test_a_single_chunk_is_joined_without_a_copy() -> None:
    tokens = numbered(4, 8)
    assert joined([{"tokens": tokens}], {"tokens"})["tokens"] is tokens


@pytest.mark.parametrize(
    "columns, sequence, sentence",
    [
        ({"a": numbered(5)}, [], "Column `a` has 5 rows, which 2 dp indexes cannot share"),
        ({"a": numbered(4), "b": numbered(2)}, [], "different numbers of rows: `a` 4, `b` 2"),
        ({"a": numbered(2, 6)}, ["a"], r"`a` has shape \(2, 6\), .* 4 chunks for the mesh .*dp=2,cp=2"),
        ({"a": numbered(2)}, ["a"], r"`a` has shape \(2,\). Give it rows as axis 0, and the sequence"),
        ({"a": np.array(1)}, [], r"`a` has shape \(\). Give it rows as axis 0"),
        ({"a": numbered(2)}, ["b"], "names the column `b`. Columns: `a`"),
        ({"a": np.array(["x", "y"])}, [], "`a` has dtype <U1"),
    ],
)
def test_columns_that_cannot_be_cut_are_refused(
    columns: dict[str, Array], sequence: list[str], sentence: str
) -> None:
    with pytest.raises(InvalidBatch, match=sentence):
        cut(columns, Mesh(dp=2, cp=2), sequence=sequence)


@pytest.mark.parametrize("index", [-1, 2])
def test_a_cp_index_outside_the_mesh_is_refused(index: int) -> None:
    with pytest.raises(InvalidRequest, match=f"cp index {index} was asked for. A mesh with cp=2 has 0 to 1"):
        chunks_of(index, 2, "zigzag")
