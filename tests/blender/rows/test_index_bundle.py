"""Copies of small files in one: whole, aligned, and nothing of what was damaged."""

from __future__ import annotations

import pytest

from blender.rows.index_bundle import packed, unpacked

FILES = {"a.facts": b"some", "b.pages": bytes(range(200)), "empty": b"", "ä.ordinals": b"x" * 64}


def test_files_come_back_as_they_were_and_lie_where_an_index_can_be_read() -> None:
    content = packed(FILES)
    found = unpacked(content)
    assert {name: bytes(it) for name, it in found.items()} == FILES
    assert all(content.index(it) % 64 == 0 for it in (b"some", bytes(range(200)), b"x" * 64))


def test_no_files_are_none() -> None:
    assert unpacked(packed({})) == {}


@pytest.mark.parametrize("place", [0, 35, 60, -1])
def test_of_a_damaged_file_nothing_is_taken(place: int) -> None:
    content = bytearray(packed(FILES))
    content[place] ^= 1
    assert unpacked(bytes(content)) == {}
    assert unpacked(packed(FILES)[:place]) == {}
