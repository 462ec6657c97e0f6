"""Samples joined into rows of a fixed length, with the tokens of their pictures written out.

    slots = Slots.by_first_fit(bins, lengths, row_tokens=8)           # by first fit within each microbatch
    join_samples(rows, bins, slots, 8, Placeholders(sample, position, tokens))

    samples     a b c | d P e | f g              P is a picture of 3 tokens
    rows        a b c d P P P e | f g            segment_lengths [3, 5], [2]

A document of a sample stays a segment. What told the origin of a row, `source`, `ordinal` and `epoch`, is a
list in the column `samples`; other columns become lists with a value a sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blender.arrays import as_arrow, as_binary, binary_integers
from blender.batch import SAMPLES
from blender.chunks.cutting import SEGMENT_LENGTHS, uncut_block, with_all_lengths
from blender.chunks.layout import ends_of, list_values
from blender.loading.sample_packing import first_fit
from factory.lake.schemas.packing import SEQUENCE_LENGTH

Ints = npt.NDArray[np.int64]

SAMPLE = pa.struct(
    [
        pa.field("source", pa.int32(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("length", pa.int32(), nullable=False),  # tokens, with those of pictures
    ]
)
_OF_ROWS = ("offset", "microbatch", "plan")
_OF_SAMPLES = ("source", "ordinal", "epoch")


@dataclass(frozen=True)
class Slots:
    """The places of samples in the rows of their microbatches; shapes are [samples]."""

    row: Ints
    start: Ints

    @classmethod
    def by_first_fit(cls, bins: Ints, lengths: Ints, row_tokens: int | None) -> Slots:
        """The places of samples that are given by ascending microbatch; without `row_tokens` a row each."""
        ends = np.flatnonzero(np.diff(bins)) + 1
        bounds = list(zip([0, *ends.tolist()], [*ends.tolist(), len(bins)], strict=True))
        if row_tokens is None:
            rows = [np.arange(stop - first) for first, stop in bounds]
            return cls(np.concatenate(rows), np.zeros(len(bins), dtype=np.int64))
        fits = [first_fit(lengths[first:stop], row_tokens) for first, stop in bounds]
        return cls(np.concatenate([fit.row for fit in fits]), np.concatenate([fit.start for fit in fits]))


@dataclass(frozen=True)
class Placeholders:
    """The pictures of samples; shapes are [pictures]."""

    sample: Ints
    """The place of the sample among those that are joined."""
    position: Ints
    """The token of the sample that stands for the picture."""
    tokens: Ints
    """How many tokens take its place."""


def join_samples(
    rows: pa.RecordBatch, bins: Ints, slots: Slots, row_tokens: int, placeholders: Placeholders
) -> pa.RecordBatch:
    """The rows of all microbatches, in order; raises InvalidRequest for samples that are not packed rows."""
    order = np.lexsort((slots.start, slots.row, bins))
    rows = rows.take(as_arrow(order))
    block = uncut_block(rows)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))

    begins = ends_of(block.n_tokens)
    repeats = np.ones(int(begins[-1]), dtype=np.int64)
    repeats[begins[place[placeholders.sample]] + placeholders.position] = placeholders.tokens
    ends = ends_of(repeats)  # the end of each token of the samples among those of the rows
    lengths = np.diff(ends[begins])

    is_first = np.concatenate([[True], (np.diff(slots.row[order]) != 0) | (np.diff(bins[order]) != 0)])
    firsts = np.flatnonzero(is_first)
    of_rows = np.append(firsts, len(order))

    values = np.repeat(binary_integers(rows.column("tokens"), block.token_bytes), repeats)
    field = rows.schema.field("tokens")
    metadata = {**field.metadata, SEQUENCE_LENGTH.encode(): str(row_tokens).encode()}
    segment_offsets, segment_lengths = list_values(with_all_lengths(rows, block).column(SEGMENT_LENGTHS))
    segments = np.diff(ends[ends_of(segment_lengths)])
    first_samples = as_arrow(firsts)
    columns: dict[str, tuple[pa.Field, pa.Array]] = {}
    for name in rows.schema.names:
        column, own = rows.column(name), rows.schema.field(name)
        if name == "tokens":
            columns[name] = own.with_metadata(metadata), as_binary(values, ends[begins[of_rows]])
            columns[SEGMENT_LENGTHS] = _listed(
                SEGMENT_LENGTHS, segment_offsets[of_rows], as_arrow(segments.astype(np.int32))
            )
        elif name in _OF_ROWS:
            columns[name] = own, column.take(first_samples)
        elif name not in _OF_SAMPLES and name != SEGMENT_LENGTHS:
            columns[name] = _listed(name, of_rows, column)
    samples = [rows.column(name) for name in _OF_SAMPLES] + [as_arrow(lengths.astype(np.int32))]
    columns[SAMPLES] = _listed(SAMPLES, of_rows, pa.StructArray.from_arrays(samples, fields=list(SAMPLE)))
    fields, arrays = zip(*columns.values(), strict=True)
    return pa.RecordBatch.from_arrays(list(arrays), schema=pa.schema(list(fields)))


def _listed(name: str, offsets: Ints, values: pa.Array) -> tuple[pa.Field, pa.Array]:
    kind = pa.list_(values.type)
    return pa.field(name, kind), pa.ListArray.from_arrays(
        as_arrow(offsets.astype(np.int32)), values, type=kind
    )
