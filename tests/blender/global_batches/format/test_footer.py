"""Footers of global batches: every damage is named, and no bytes raise anything else."""

from __future__ import annotations

import json
from functools import cache
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blender.errors import InvalidRequest
from blender.global_batches.errors import DamagedBatch, NamespaceDiffers
from blender.global_batches.format.cut import cut
from blender.global_batches.format.footer import MAGIC, TRAILER, Footer
from blender.global_batches.format.slices import EncodedBatch, encode
from blender.spec.mesh import Mesh

NAME = "batches/a/3/17-5f0c"
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=4) | st.dictionaries(st.text(max_size=5), values, max_size=3),
)


@cache
def batch() -> EncodedBatch:
    columns = {"ids": np.arange(2, dtype=np.int32), "tokens": np.arange(8, dtype=np.uint16).reshape(2, 4)}
    return encode(cut(columns, Mesh(dp=2, cp=2), sequence=["tokens"]), {"offset": 3})


def footer_bytes(body: bytes) -> bytes:
    return body[batch().footer_offset : batch().footer_offset + batch().footer_length]


def read_all(body: bytes) -> None:
    """Read an object as a tool does that has no log."""
    footer = Footer.of_object(body, NAME)
    for dp in range(footer.dp):
        for chunk in range(footer.chunks):
            offset, length = footer.range_of(dp, chunk)
            footer.decode(dp, chunk, body[offset : offset + length])


@pytest.mark.invariant("A flipped byte of a batch or of the log is named and never served.")
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_named(mask: int) -> None:
    body = batch().body
    footer = Footer.of_object(body, NAME)
    slice_at = {}
    for dp, chunk in np.ndindex(footer.dp, footer.chunks):
        offset, length = footer.range_of(dp, chunk)
        slice_at |= dict.fromkeys(
            range(offset, offset + length), f"Slice dp {dp}, chunk {chunk} of the batch"
        )
    read_all(body)
    for position in range(len(body)):
        damaged = bytearray(body)
        damaged[position] ^= mask
        with pytest.raises(DamagedBatch) as damage:
            read_all(bytes(damaged))
        place = slice_at.get(position, "trailer" if position >= len(body) - 24 else "The footer of the batch")
        if place == "trailer":  # its CRC32 accuses the footer
            assert "no trailer" in str(damage.value) or "CRC32" in str(damage.value)
        else:
            assert str(damage.value).startswith(place)
        assert NAME in str(damage.value)


def test_every_flipped_byte_of_a_footer_disagrees_with_the_log() -> None:
    data = footer_bytes(batch().body)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(DamagedBatch, match=f"footer of the batch {NAME} .* not the one in the log"):
            Footer.parse(damaged, NAME, batch().footer_hash)


def test_every_truncated_object_is_noticed() -> None:
    for length in range(len(batch().body)):
        with pytest.raises(DamagedBatch, match=NAME):
            read_all(batch().body[:length])


@pytest.mark.parametrize("length", [0, 63, 65])
def test_a_slice_of_another_length_is_named(length: int) -> None:
    footer = Footer.of_object(batch().body, NAME)
    with pytest.raises(DamagedBatch, match=f"Slice dp 1, chunk 3 .* has 64 bytes, and {length} were read"):
        footer.decode(1, 3, bytes(length))


def test_a_slice_in_place_of_another_is_noticed() -> None:
    footer = Footer.of_object(batch().body, NAME)
    offset, length = footer.range_of(0, 1)
    with pytest.raises(DamagedBatch, match="Slice dp 1, chunk 1"):
        footer.decode(1, 1, batch().body[offset : offset + length])


@pytest.mark.parametrize("dp, chunk", [(-1, 0), (2, 0), (0, -1), (0, 4)])
def test_a_slice_that_a_batch_does_not_have_is_refused(dp: int, chunk: int) -> None:
    with pytest.raises(InvalidRequest, match=f"Slice dp {dp}, chunk {chunk} of .* 0 to 1, its chunks 0 to 3"):
        Footer.of_object(batch().body, NAME).range_of(dp, chunk)


def test_a_footer_of_a_newer_version_says_to_upgrade() -> None:
    with pytest.raises(NamespaceDiffers, match=f"{NAME} has format 3, .* formats up to 2. Upgrade"):
        Footer.parse(b'{"version":3,"slices":"other"}', NAME)


@given(data=st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_a_damaged_footer(data: bytes) -> None:
    with pytest.raises(DamagedBatch):
        Footer.parse(data, NAME)
    with pytest.raises(DamagedBatch):
        Footer.of_object(data, NAME)


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b"9" * 5000, b'{"version":0}', b'{"version":-1}', b"\xff", b""]
)
def test_hostile_json_is_a_damaged_footer(data: bytes) -> None:
    with pytest.raises(DamagedBatch):
        Footer.parse(data, NAME)


ONE_COLUMN = {"name": "a", "dtype": "<f8", "cut": False, "shapes": [[1]]}


@pytest.mark.parametrize(
    "change, fault",
    [
        ({"origin": float("nan")}, "NaN is not JSON"),
        ({"dp": 0, "crc32": []}, "not a whole number"),
        ({"crc32": [0, 0]}, "another number of slices"),
        ({"crc32": [2**32]}, "not a whole number"),
        ({"chunks": 2, "crc32": [0, 0]}, "another number of slices"),
        ({"columns": []}, "missing or not in order"),
        ({"columns": [ONE_COLUMN, ONE_COLUMN]}, "missing or not in order"),
        ({"columns": [ONE_COLUMN | {"cut": True}]}, "impossible shapes"),
        ({"columns": [ONE_COLUMN | {"shapes": [[1], [1]]}]}, "impossible shapes"),
        ({"columns": [ONE_COLUMN | {"shapes": [[1] * 65]}]}, "impossible shapes"),
        ({"columns": [ONE_COLUMN | {"shapes": [[2**60, 0]]}]}, "impossible shapes"),  # numpy refuses it too
        ({"columns": [ONE_COLUMN | {"dtype": "<c8"}]}, "unknown kind"),
        ({"more": 1}, "unknown fields"),
    ],
)
def test_a_footer_that_no_producer_writes_is_damaged(change: dict[str, object], fault: str) -> None:
    fields = {"version": 1, "dp": 1, "chunks": 1, "columns": [ONE_COLUMN], "crc32": [0], "origin": None}
    assert Footer.parse(json.dumps(fields).encode(), NAME).length == 64
    with pytest.raises(DamagedBatch, match=f"The footer of the batch {NAME} is damaged: .*{fault}"):
        Footer.parse(json.dumps(fields | change).encode(), NAME)


def test_an_object_whose_slices_end_before_its_footer_is_damaged() -> None:
    data = footer_bytes(batch().body)
    trailer = TRAILER.pack(64, len(data), crc32(data), MAGIC)
    with pytest.raises(DamagedBatch, match=f"The footer of the batch {NAME} .* begins at 64"):
        Footer.of_object(bytes(64) + data + trailer, NAME)


@given(data=st.data())
def test_a_changed_footer_is_refused_or_consistent(data: st.DataObject) -> None:
    """One value anywhere in the JSON is replaced: reading by it ends in views or in DamagedBatch."""
    fields = json.loads(footer_bytes(batch().body))
    node, key = fields, data.draw(st.sampled_from(sorted(fields)))
    while isinstance(node[key], list | dict) and node[key] and data.draw(st.booleans()):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    big = st.sampled_from([2**31, 2**40, 2**62, 2**63, 2**64, -1, 1.0, True])
    node[key] = data.draw(json_values | st.integers(0, 8) | big | st.lists(st.integers(0, 2**62) | big))
    try:
        footer = Footer.parse(json.dumps(fields).encode(), NAME)
    except NamespaceDiffers:
        assert fields["version"] > 1
        return
    except DamagedBatch:
        return
    for dp in range(footer.dp):
        for chunk in range(footer.chunks):
            length = footer.range_of(dp, chunk)[1]
            try:
                arrays = footer.decode(dp, chunk, batch().body[: min(length, len(batch().body))])
            except DamagedBatch:
                continue
            assert sum(array.nbytes for array in arrays.values()) <= length
