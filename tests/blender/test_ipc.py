"""Arrow IPC streams: the bytes Arrow writes, and the batch back."""

from __future__ import annotations

import pyarrow as pa

from blender.ipc import IpcStreams, from_ipc, to_ipc


def test_every_batch_of_a_schema_is_a_stream_of_its_own_as_arrow_writes_it() -> None:
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("text", pa.string())])
    streams = IpcStreams(schema)
    for rows in (3, 0, 5):
        columns = [
            pa.array(range(rows), pa.int64()),
            pa.array(["a", None, "bcd", "", "e"][:rows], pa.string()),
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch)
        assert b"".join(streams.pieces(batch)) == sink.getvalue().to_pybytes()


def test_a_batch_travels_with_its_schema() -> None:
    field = pa.field("tokens", pa.binary(), metadata={"factory.token-bytes": "2"})
    batch = pa.RecordBatch.from_arrays([pa.array([b"ab", None, b""])], schema=pa.schema([field]))
    back = from_ipc(b"".join(to_ipc(batch)))
    assert back.equals(batch, check_metadata=True)
