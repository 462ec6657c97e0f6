"""A block as bytes: valid protobuf, aligned, and read back where it lies."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.proto.blender.v1 import blender_pb2 as pb
from blender.protocol.wire import IpcPieces, Outgoing, from_ipc, parse, serialize, to_ipc

numbers = st.integers(0, 2**62)
payloads = st.binary(min_size=1, max_size=300)


@settings(deadline=None)
@given(numbers, numbers, payloads)
def test_generated_code_reads_what_we_write(offset: int, next_offset: int, payload: bytes) -> None:
    message = pb.FetchResponse.FromString(serialize(Outgoing(offset, next_offset, [payload])))
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
    message = serialize(Outgoing(offset, next_offset, [payload]))
    assert message.endswith(payload)
    assert (len(message) - len(payload)) % 8 == 0


@settings(deadline=None)
@given(payloads, st.data())
def test_a_message_cut_short_is_an_error(payload: bytes, data: st.DataObject) -> None:
    message = serialize(Outgoing(300, 301, [payload]))
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


def test_every_batch_of_a_schema_is_a_stream_of_its_own_as_arrow_writes_it() -> None:
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("text", pa.string())])
    pieces = IpcPieces(schema)
    for rows in (3, 0, 5):
        columns = [
            pa.array(range(rows), pa.int64()),
            pa.array(["a", None, "bcd", "", "e"][:rows], pa.string()),
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch)
        assert b"".join(pieces.of(batch)) == sink.getvalue().to_pybytes()


def test_a_batch_travels_with_its_schema() -> None:
    field = pa.field("tokens", pa.binary(), metadata={"factory.token-bytes": "2"})
    batch = pa.RecordBatch.from_arrays([pa.array([b"ab", None, b""])], schema=pa.schema([field]))
    back = from_ipc(parse(serialize(Outgoing(0, 1, to_ipc(batch)))).payload)
    assert back.equals(batch, check_metadata=True)
