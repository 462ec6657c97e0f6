"""Packed rows as a blend delivers them, by the lengths of their documents, or drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st


def packed(
    documents: list[list[int]], length: int, *, width: int = 2, segments: bool = True, rest: int = 0
) -> pa.RecordBatch:
    """Rows of documents of the given lengths; tokens count up from 1. `rest` tokens follow the segments."""
    token, tokens = 1, []
    for row in documents:
        n_tokens = min(length, sum(row) + rest)
        tokens.append(np.arange(token, token + n_tokens).astype(f"<u{width}").tobytes())
        token += n_tokens
    metadata = {"factory.token-bytes": str(width), "factory.sequence-length": str(length)}
    rows = np.arange(len(documents))
    columns = {
        pa.field("offset", pa.int64()): rows // 2,
        pa.field("source", pa.int32()): rows % 3,
        pa.field("ordinal", pa.int64()): rows + 100,
        pa.field("epoch", pa.int64()): rows // 4,
        pa.field("tokens", pa.binary(), metadata=metadata): tokens,
    }
    if segments:
        columns[pa.field("segment_lengths", pa.list_(pa.int32()))] = documents
    arrays = [pa.array(values, field.type) for field, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(columns)))


@st.composite
def packed_rows(draw: st.DrawFn) -> pa.RecordBatch:
    """Full, short and empty rows of documents of 0 tokens and more, with and without segments."""
    length = draw(st.integers(1, 40))
    documents = []
    for _ in range(draw(st.integers(0, 5))):
        row = draw(st.lists(st.integers(0, min(length, 12)), max_size=8))
        while sum(row) > length:
            row.pop()
        if draw(st.booleans()):
            row.append(length - sum(row))  # a full row
        documents.append(row)
    return packed(
        documents,
        length,
        width=draw(st.sampled_from([2, 4])),
        segments=draw(st.booleans()),
        rest=draw(st.integers(0, 3)),
    )
