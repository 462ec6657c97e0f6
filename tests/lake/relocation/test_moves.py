"""Locations move with their warehouse, whatever their spelling; files get names that nobody else has."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.lake.relocation.moves import Move, is_inside, spelled_alike, warehouse_of

OLD, NEW = "file:///old/a lake/warehouse", "file:///new/lake/warehouse"
MOVE = Move((OLD,), NEW)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1, max_size=20)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
SCHEMES = st.sampled_from(["", "file:", "file://"])


@given(scheme=SCHEMES, path=PATHS)
def test_a_location_moves_and_keeps_its_scheme(scheme: str, path: str) -> None:
    moved = MOVE.moved(f"{scheme}/old/a lake/warehouse/{path}")
    assert moved == f"{scheme}/new/lake/warehouse/{path}"
    assert MOVE.moved(moved) == moved
    assert MOVE.origins(moved) == [f"{scheme}/old/a lake/warehouse/{path}"]


@given(path=PATHS)
def test_a_location_beside_the_warehouse_stays(path: str) -> None:
    for location in (f"file:///old/a lake/warehouse{path}", f"s3://old/a lake/warehouse/{path}", path):
        assert not MOVE.concerns(location)
        assert MOVE.moved(location) == location


@given(schemes=st.tuples(SCHEMES, SCHEMES), path=PATHS)
def test_a_rewritten_file_has_one_new_name_in_every_spelling(schemes: tuple[str, str], path: str) -> None:
    names = [MOVE.renamed(f"{scheme}/old/a lake/warehouse/{path}") for scheme in schemes]
    assert spelled_alike(names[0]) == spelled_alike(names[1])
    assert spelled_alike(names[0]) != spelled_alike(MOVE.moved(f"/old/a lake/warehouse/{path}"))


@given(files=st.sets(NAMES, min_size=2, max_size=5))
def test_no_two_files_get_one_name(files: set[str]) -> None:
    assert len({MOVE.renamed(f"{OLD}/t/metadata/{file}") for file in files}) == len(files)


def test_a_new_name_keeps_the_form_that_engines_parse() -> None:
    uuid = "0132489a-fb2d-4f4f-9657-7d75072df64e"
    for name, form in [
        (f"00007-{uuid}.metadata.json", r"00007-[0-9a-f-]{36}\.metadata\.json"),
        (f"snap-83-0-{uuid}.avro", r"snap-83-0-[0-9a-f-]{36}\.avro"),
        (f"{uuid}-m12.avro", r"[0-9a-f-]{36}-m12\.avro"),
        ("v3.metadata.json", r"[0-9a-f-]{36}-v3\.metadata\.json"),
    ]:
        renamed = MOVE.renamed(f"{OLD}/raw/web/metadata/{name}").rpartition("/")[2]
        assert re.fullmatch(form, renamed), renamed
        assert uuid not in renamed


@pytest.mark.parametrize(
    "old, new, location, moved",
    [
        (OLD, "s3://bucket/w", "file:/old/a lake/warehouse/raw/1", "s3://bucket/w/raw/1"),
        ("s3://a/w", "s3://b/w", "s3://a/w/raw/1", "s3://b/w/raw/1"),
        ("s3://a/w", "s3://b/w", "s3://a/w2/raw/1", "s3://a/w2/raw/1"),
        ("file:///w", "file:///w/w", "file:///w/raw/1", "file:///w/w/raw/1"),
        ("file:///w", "file:///w/w", "file:///w/w/raw/1", "file:///w/w/raw/1"),
    ],
)
def test_warehouses_in_stores_and_inside_each_other_move_too(
    old: str, new: str, location: str, moved: str
) -> None:
    assert Move((old,), new).moved(location) == moved


def test_every_spelling_of_the_old_place_moves() -> None:
    move = Move(("file:///link/w", "file:///disk/w"), NEW)
    assert [move.moved(f"file:/{place}/w/1") for place in ("link", "disk")] == [
        "file:/new/lake/warehouse/1"
    ] * 2
    assert set(move.origins("/new/lake/warehouse/1")) == {"/link/w/1", "/disk/w/1"}


def test_the_warehouse_is_found_in_the_location_of_metadata() -> None:
    assert warehouse_of(f"{OLD}/raw/web/metadata/00000-1.metadata.json") == OLD
    assert warehouse_of("s3://bucket/table/00000-1.metadata.json") is None
    assert is_inside(f"{OLD}/x", OLD)
    assert not is_inside(f"{OLD}2/x", OLD)
