"""Streams of batches for a kernel: sorted batches, regrouped so that no group is split.

`applyInArrow` calls Python once per group, which costs a millisecond; with thousands of small groups it is
far cheaper to give a kernel many whole groups at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

HELD = 1 << 20  # held by a kernel at once: about 100 MB of tokens, at most 32 MB of members, pairs or records
_PACKED_ROWS = 64  # rows of packed records, each with hundreds of records


def whole_groups(batches: Iterable[pa.RecordBatch], by: str, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of `batches`, in order, in batches of whole groups of `rows` rows or a little more.

    Rows with equal `by` must be adjacent, and `by` has no nulls. A group larger than `rows` comes in one
    batch, so memory holds `rows` rows or the largest group. Strings become `large_string`, which a group of
    more than 2 GiB needs.
    """
    pending: list[pa.RecordBatch] = []
    n_rows, enough = 0, rows
    for batch in batches:
        if not batch.num_rows:
            continue
        pending.append(_large(batch))
        n_rows += batch.num_rows
        if n_rows < enough:
            continue
        merged = _merge(pending)
        keys = merged.column(by)
        begin_of_last = pc.index(keys, keys[-1]).as_py()
        if begin_of_last:
            yield merged.slice(0, begin_of_last)
        pending = [merged.slice(begin_of_last)]
        n_rows = merged.num_rows - begin_of_last
        enough = max(rows, 2 * n_rows)  # merges a giant group only when it has doubled
    if pending:
        yield _merge(pending)


def whole_parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of packed records, sorted by `part`, in batches of as few whole parts as possible."""
    return whole_groups(pieces(batches, _PACKED_ROWS), "part", rows=1)


def pieces(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The batches, cut into pieces of at most `rows` rows."""
    for batch in batches:
        for begin in range(0, batch.num_rows, rows):
            yield batch.slice(begin, rows)


def bounded_pieces(
    batches: Iterable[pa.RecordBatch], rows: int, column: str, most: int
) -> Iterator[pa.RecordBatch]:
    """The batches, cut into pieces of at most `rows` rows with a sum of `column` of at most `most`.

    A row of a larger value is a piece of its own.
    """
    for piece in pieces(batches, rows):
        begin, total = 0, 0
        for place, amount in enumerate(piece[column].to_pylist()):
            if total + amount > most and place > begin:
                yield piece.slice(begin, place - begin)
                begin, total = place, 0
            total += amount
        if begin < piece.num_rows:
            yield piece.slice(begin)


class Accumulator(Protocol):
    """A kernel that takes batches and returns rows; its length is the number of units it holds."""

    def __len__(self) -> int: ...
    def drain(self) -> pa.RecordBatch: ...


def drained(
    accumulator: Accumulator, add: Callable[[pa.RecordBatch], None], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `accumulator` whenever it holds more than `HELD` of its units, and at the end.

    `add` is the method of `accumulator` that takes each of `batches`.
    """
    for batch in batches:
        add(batch)
        if len(accumulator) > HELD:
            yield accumulator.drain()
    yield accumulator.drain()


def _large(batch: pa.RecordBatch) -> pa.RecordBatch:
    fields = [
        field.with_type(pa.large_string()) if pa.types.is_string(field.type) else field
        for field in batch.schema
    ]
    return batch.cast(pa.schema(fields))


def _merge(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (merged,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return merged
