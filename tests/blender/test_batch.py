"""Batches for a trainer: padded tokens and the borders of documents, against a row-by-row oracle."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blender.batch import Batch, Block
from blender.errors import InvalidRequest

LENGTH = 6
rows = st.lists(
    st.lists(st.integers(1, LENGTH), max_size=LENGTH).filter(lambda lengths: sum(lengths) <= LENGTH),
    min_size=1,
    max_size=6,
)


def batch(documents: list[list[int]], *, width: int = 2, lengths: bool = True) -> Batch:
    """A batch whose rows hold documents of the given lengths; tokens count up from 1 over the batch."""
    token, tokens = 1, []
    for row in documents:
        tokens.append(np.arange(token, token + sum(row)).astype(f"<u{width}").tobytes())
        token += sum(row)
    metadata = {"factory.token-bytes": str(width), "factory.sequence-length": str(LENGTH)}
    fields = [pa.field("tokens", pa.binary(), metadata=metadata)]
    columns = [pa.array(tokens, pa.binary())]
    if lengths:
        fields.append(pa.field("segment_lengths", pa.list_(pa.int32())))
        columns.append(pa.array(documents, pa.list_(pa.int32())))
    return Batch(0, 1, pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


@settings(deadline=None)
@given(rows, st.sampled_from([2, 4]))
def test_tokens_positions_and_borders_are_those_of_the_rows(documents: list[list[int]], width: int) -> None:
    one = batch(documents, width=width)
    token, tokens, positions, ids, targets, ends = 1, [], [], [], [], [0]
    for row in documents:
        padding = LENGTH - sum(row)
        tokens.append([*range(token, token + sum(row)), *[0] * padding])
        targets.append([])
        for length in row:
            targets[-1] += [*range(token + 1, token + length), -100]
            token += length
        targets[-1] += [-100] * padding
        stretches = [*row, *([padding] if padding else [])]
        positions.append([place for stretch in stretches for place in range(stretch)])
        ids.append([number for number, stretch in enumerate(stretches) for _ in range(stretch)])
        for stretch in stretches:
            ends.append(ends[-1] + stretch)
    assert one.tokens.tolist() == tokens
    assert one.n_tokens.tolist() == [sum(row) for row in documents]
    assert one.position_ids.tolist() == positions
    assert one.document_ids.tolist() == ids
    assert one.targets.tolist() == targets
    assert one.cu_seqlens.tolist() == ends
    assert one.targets.dtype == np.int64
    assert {one.tokens.dtype, one.position_ids.dtype, one.cu_seqlens.dtype, one.document_ids.dtype} == {
        np.dtype(np.int32)
    }


@settings(deadline=None)
@given(rows, st.data())
def test_a_slice_of_a_block_is_the_same_as_a_batch_of_its_own(
    documents: list[list[int]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(documents) - 1))
    whole = batch(documents)
    stop = data.draw(st.integers(first + 1, len(documents)))
    alone = Batch(0, 1, whole.arrow.slice(first, stop - first))
    shared = Batch.of_block(0, 1, Block(whole.arrow), first, stop)
    for part in (alone, shared):
        assert len(part) == stop - first
        assert part.arrow.equals(whole.arrow.slice(first, stop - first))
        for name in ("tokens", "n_tokens", "position_ids", "document_ids", "targets"):
            assert getattr(part, name).tolist() == getattr(whole, name)[first:stop].tolist()
        borders = whole.cu_seqlens - first * LENGTH
        inside = (borders >= 0) & (borders <= (stop - first) * LENGTH)
        assert part.cu_seqlens.tolist() == borders[inside].tolist()


def test_a_batch_is_pickled_without_the_rest_of_its_block() -> None:
    whole = batch([[4, 2]] * 10_000)
    part = Batch.of_block(3, 4, Block(whole.arrow), 5_000, 5_002)
    assert part.tokens.shape == (2, LENGTH)  # computed for the whole block
    pickled = pickle.dumps(part)
    assert len(pickled) < 4_000
    there = pickle.loads(pickled)
    assert (there.offset, there.next_offset, len(there)) == (3, 4, 2)
    assert there.arrow.equals(part.arrow, check_metadata=True)
    assert there.tokens.tolist() == part.tokens.tolist()


def test_full_rows_of_four_bytes_a_token_are_not_copied() -> None:
    one = batch([[4, 2], [6], [1, 5]], width=4)
    data = one.arrow.column("tokens").buffers()[2]
    assert one.tokens.ctypes.data == data.address
    part = Batch(0, 1, one.arrow.slice(1))
    assert part.tokens.ctypes.data == data.address + 4 * LENGTH


def test_a_row_without_segments_is_one_document() -> None:
    one = batch([[4, 2], [3]], lengths=False)
    assert one.cu_seqlens.tolist() == [0, 6, 9, 12]


def test_a_blend_without_tokens_says_so() -> None:
    with pytest.raises(InvalidRequest, match="no column `tokens`"):
        _ = Batch(0, 1, pa.RecordBatch.from_pydict({"n_tokens": [3]})).tokens
    with pytest.raises(InvalidRequest, match=r"do not say their `factory\.token-bytes`"):
        _ = Batch(0, 1, pa.RecordBatch.from_pydict({"tokens": [b"ab"]})).tokens
