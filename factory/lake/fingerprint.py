"""The content fingerprint of a table: the sum of a 128-bit hash per row.

The sum is independent of order, so it is computed in parallel and extended when rows are appended; equal rows
give equal fingerprints on any machine, whatever the files, partitions or engine. The row hash is
`native/src/lake/fingerprint.rs`. A fingerprint detects differences; it does not resist forgery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native

_MODULUS = 1 << 128


@dataclass(frozen=True)
class Fingerprint:
    """The sum of row hashes modulo 2^128 and the number of rows."""

    total: int = 0
    rows: int = 0

    def __add__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint((self.total + other.total) % _MODULUS, self.rows + other.rows)

    def __sub__(self, other: Fingerprint) -> Fingerprint:
        return Fingerprint((self.total - other.total) % _MODULUS, self.rows - other.rows)

    def __str__(self) -> str:
        return f"{self.total:032x}-{self.rows}"

    @classmethod
    def parse(cls, text: str) -> Fingerprint:
        """Parse the result of `str`."""
        total, _, rows = text.partition("-")
        return cls(int(total, 16), int(rows))

    @classmethod
    def of_sum(cls, total: bytes, rows: int) -> Fingerprint:
        """Convert the 16 little-endian bytes of the native kernel."""
        return cls(int.from_bytes(total, "little"), rows)


def fingerprint(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Fingerprint:
    """Return the fingerprint of the rows of `batches` over `columns`."""
    names = list(columns)
    rebuilt = map(_rebuilt, batches)
    return sum(
        (Fingerprint.of_sum(_native.fingerprint(batch, names), batch.num_rows) for batch in rebuilt),
        Fingerprint(),
    )


def fingerprints(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], by: str
) -> dict[str | None, Fingerprint]:
    """Return the fingerprint of the rows of `batches` over `columns` per value of the string column `by`."""
    found: dict[str | None, Fingerprint] = {}
    for batch in map(_rebuilt, batches):
        column = batch.column(by)
        keys = column.unique().to_pylist()
        for key in keys:
            same = pc.is_null(column) if key is None else pc.equal(column, key)
            of_key = batch.filter(same) if len(keys) > 1 else batch
            found[key] = found.get(key, Fingerprint()) + fingerprint([of_key], columns)
    return found


def _rebuilt(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return `batch` with its columns of empty lists rebuilt.

    Spark's Arrow writer omits the offsets of a child array without values, and a reader would take arbitrary
    memory for them. Such a column holds no value, so rebuilding it is cheap.
    """
    columns = [
        pa.array(column.to_pylist(), column.type) if _is_hollow(column) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_hollow(column: pa.Array) -> bool:
    """Whether `column` is, or contains, a list or map whose child has no values."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return len(column.values) == 0 or _is_hollow(column.values)
    if pa.types.is_map(kind):
        return len(column.keys) == 0
    if pa.types.is_struct(kind):
        return any(_is_hollow(column.field(number)) for number in range(kind.num_fields))
    return False
