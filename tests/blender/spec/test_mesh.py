"""The places of ranks in a mesh, against tables written out and Megatron's groups."""

from __future__ import annotations

import re
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.spec.mesh import AXES, Axis, Coordinate, Mesh

ORDERS = ["-".join(axes) for axes in permutations(AXES)]
extents = st.integers(1, 4)


def groups(mesh: Mesh, *axes: Axis) -> list[list[int]]:
    """The ranks that differ on `axes` alone, as lists, by their first rank."""
    members: dict[tuple[int, ...], list[int]] = {}
    for rank in range(mesh.ranks):
        coordinate = mesh.coordinate(rank)
        others = tuple(coordinate.along(axis) for axis in AXES if axis not in axes)
        members.setdefault(others, []).append(rank)
    return list(members.values())


@pytest.mark.parametrize("order", ORDERS)
def test_ranks_count_through_the_axes_of_any_order(order: str) -> None:
    mesh = Mesh(pp=2, dp=3, cp=2, tp=4, order=order)
    nearest_last = list(reversed(order.split("-")))
    written_out = [
        Coordinate(**dict(zip(nearest_last, indexes, strict=True)))
        for indexes in product(*(range(mesh.extent(axis)) for axis in nearest_last))  # type: ignore[arg-type]
    ]
    assert [mesh.coordinate(rank) for rank in range(mesh.ranks)] == written_out
    assert [mesh.rank(coordinate) for coordinate in written_out] == list(range(48))


def test_groups_of_16_ranks_are_those_that_megatron_documents() -> None:
    mesh = Mesh(tp=2, pp=4, dp=2)
    assert groups(mesh, "dp") == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]
    assert groups(mesh, "tp") == [[2 * pair, 2 * pair + 1] for pair in range(8)]
    assert groups(mesh, "pp") == [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]]


def test_ranks_of_a_context_parallel_group_lie_between_tensor_and_data_parallel_ones() -> None:
    mesh = Mesh(tp=2, cp=2, dp=2)
    assert groups(mesh, "cp") == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert groups(mesh, "dp", "cp") == [[0, 2, 4, 6], [1, 3, 5, 7]]


@given(pp=extents, dp=extents, cp=extents, tp=extents, order=st.sampled_from(ORDERS))
def test_places_and_ranks_are_inverse(pp: int, dp: int, cp: int, tp: int, order: str) -> None:
    mesh = Mesh(pp, dp, cp, tp, order)
    places = {mesh.coordinate(rank) for rank in range(mesh.ranks)}
    assert len(places) == mesh.ranks == pp * dp * cp * tp
    assert sorted(map(mesh.rank, places)) == list(range(mesh.ranks))


def test_a_mesh_is_read_from_text_and_written_as_text() -> None:
    assert Mesh.parse("dp=2, cp=4") == Mesh(dp=2, cp=4)
    assert str(Mesh(dp=2, cp=4)) == "pp=1,dp=2,cp=4,tp=1"
    assert Mesh.parse(str(Mesh(3, 2, 5, 7))) == Mesh(3, 2, 5, 7)


@pytest.mark.parametrize("text", ["", "dp", "dp=2,dp=3", "ep=2", "dp=-1", "dp=2;cp=2", "dp=2,"])
def test_any_other_text_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"is not the extent of an axis\. .* as in `dp=2,cp=2`"):
        Mesh.parse(text)


def test_impossible_meshes_and_places_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"`cp` is 0\. Give a whole number, 1 or more"):
        Mesh(cp=0)
    for order in ("tp-cp-dp", "tp-cp-dp-dp", "tp,cp,dp,pp", "tp-cp-ep-dp-pp"):
        with pytest.raises(InvalidRequest, match="is not an order of a mesh"):
            Mesh(order=order)
    for rank in (-1, 4, "3", None, 1.0, True, [1]):
        with pytest.raises(
            InvalidRequest, match=rf"Rank {re.escape(repr(rank))} was asked for, and the mesh .* 0 to 3"
        ):
            Mesh(dp=4).coordinate(rank)
    with pytest.raises(InvalidRequest, match="`tp` is outside"):
        Mesh(dp=4).rank(Coordinate(tp=1))


@pytest.mark.parametrize("extent", [2.5, "4", None, True, float("nan")])
def test_an_extent_is_a_whole_number(extent: object) -> None:
    with pytest.raises(InvalidRequest, match=r"`dp` is .*\. Give a whole number"):
        Mesh(dp=extent)  # type: ignore[arg-type]


def test_an_extent_of_numpy_is_that_of_python() -> None:
    mesh = Mesh(dp=np.int64(4))  # type: ignore[arg-type]
    assert mesh == Mesh(dp=4)
    assert type(mesh.dp) is int


@pytest.mark.parametrize("extents", [{"dp": 10**9}, {"tp": 2**20 + 1}, {"pp": 2**10, "dp": 2**10, "cp": 2}])
def test_a_mesh_of_too_many_ranks_is_refused(extents: dict[str, int]) -> None:
    assert Mesh(dp=2**20).ranks == 2**20
    with pytest.raises(InvalidRequest, match=r"has [\d,]+ ranks\. Use extents whose product"):
        Mesh(**extents)


def test_an_extent_of_many_digits_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidRequest, match="is not the extent of an axis"):
        Mesh.parse("dp=" + "9" * 5_000)


def test_an_order_is_text() -> None:
    with pytest.raises(InvalidRequest, match="is not an order of a mesh"):
        Mesh(order=None)  # type: ignore[arg-type]
