"""A block as bytes: valid protobuf, aligned, read in place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.proto.blender.v1 import blender_pb2 as pb
from blender.wire.wire import OutgoingBlock, parse, serialize

numbers = st.integers(0, 2**62)
payloads = st.binary(min_size=1, max_size=300)


@settings(deadline=None)
@given(numbers, numbers, payloads)
def test_generated_code_reads_what_we_write(offset: int, next_offset: int, payload: bytes) -> None:
    message = pb.FetchResponse.FromString(serialize(OutgoingBlock(offset, next_offset, [payload])))
    assert (message.offset, message.next_offset, message.payload) == (offset, next_offset, payload)


@settings(deadline=None)
@given(numbers, numbers, payloads)
def test_we_read_what_generated_code_writes(offset: int, next_offset: int, payload: bytes) -> None:
    written = pb.FetchResponse(offset=offset, next_offset=next_offset, payload=payload).SerializeToString()
    block = parse(written)
    assert (block.offset, block.next_offset, bytes(block.payload)) == (offset, next_offset, payload)


@settings(deadline=None)
@given(numbers, numbers, payloads)
def test_the_payload_begins_aligned_and_ends_the_message(
    offset: int, next_offset: int, payload: bytes
) -> None:
    message = serialize(OutgoingBlock(offset, next_offset, [payload]))
    assert message.endswith(payload)
    assert (len(message) - len(payload)) % 8 == 0


@settings(deadline=None)
@given(payloads, st.data())
def test_a_message_cut_short_is_an_error(payload: bytes, data: st.DataObject) -> None:
    message = serialize(OutgoingBlock(300, 301, [payload]))
    cut = data.draw(st.integers(len(message) - len(payload), len(message) - 1))
    with pytest.raises(ValueError, match="ends inside"):
        parse(message[:cut])


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_block_or_a_value_error(noise: bytes) -> None:
    try:
        block = parse(noise)
    except ValueError:
        return
    assert len(block.payload) <= len(noise)
