"""Copies of small files in one file: whole, aligned, and rejected when damaged."""

from __future__ import annotations

import pytest

from blender.rows.index.index_bundle import pack_bundle, unpack_bundle

FILES = {"a.facts": b"some", "b.pages": bytes(range(200)), "empty": b"", "ä.ordinals": b"x" * 64}


def test_files_come_back_unchanged_and_aligned() -> None:
    content = pack_bundle(FILES)
    found = unpack_bundle(content)
    assert {name: bytes(content_bytes) for name, content_bytes in found.items()} == FILES
    assert all(content.index(part) % 64 == 0 for part in (b"some", bytes(range(200)), b"x" * 64))


def test_no_files_are_none() -> None:
    assert unpack_bundle(pack_bundle({})) == {}


@pytest.mark.parametrize("position", [0, 35, 60, -1])
def test_of_a_damaged_file_nothing_is_taken(position: int) -> None:
    content = bytearray(pack_bundle(FILES))
    content[position] ^= 1
    assert unpack_bundle(bytes(content)) == {}
    assert unpack_bundle(pack_bundle(FILES)[:position]) == {}
