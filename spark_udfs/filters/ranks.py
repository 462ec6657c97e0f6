"""Counts of numbers by their leading bits, which give the number of a rank without a sort."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

_SIGN = np.uint64(1 << 63)
_COUNTS = pa.schema([("bits", pa.int32()), ("n", pa.int64())])


def sortable(values: np.ndarray) -> np.ndarray:
    """Return float64 `values` as uint64 in the same order; -0 becomes 0."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def number_at(number: int) -> float:
    """Return the float64 that `sortable` turns into `number`."""
    bits = np.uint64(number)
    return float((bits ^ _SIGN if bits & _SIGN else ~bits).view(np.float64))


def count(batches: Iterator[pa.RecordBatch], prefix: int, level: int) -> Iterator[pa.RecordBatch]:
    """Yield (bits, n) of a column of float64: counts of the numbers with first `16 * level` bits `prefix`.

    `bits` are the next 16 bits of a number, as `sortable` makes it.
    """
    total = np.zeros(1 << 16, dtype=np.int64)
    shift = np.uint64(48 - 16 * level)
    for batch in batches:
        numbers = sortable(batch.column(0).to_numpy(zero_copy_only=False)) >> shift
        numbers = numbers[numbers >> np.uint64(16) == np.uint64(prefix)]
        total += np.bincount((numbers & np.uint64(0xFFFF)).astype(np.int64), minlength=1 << 16)
    [bits] = np.nonzero(total)
    yield pa.RecordBatch.from_arrays([pa.array(bits.astype(np.int32)), pa.array(total[bits])], schema=_COUNTS)
