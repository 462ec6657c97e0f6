"""The content fingerprint of a table: the sum over its rows of a 128-bit hash of each.

A sum can be computed in parallel, in any order, and added to when rows are appended; the same rows give
the same fingerprint on any machine, whatever the files, partitions or engine. One row is hashed by
`native/src/lake/fingerprint.rs`. A fingerprint detects differences; it does not protect against somebody who
forges equal content.
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
        """The inverse of `str`."""
        total, _, rows = text.partition("-")
        return cls(int(total, 16), int(rows))

    @classmethod
    def of_sum(cls, total: bytes, rows: int) -> Fingerprint:
        """From the 16 little-endian bytes the native kernel gives."""
        return cls(int.from_bytes(total, "little"), rows)


def fingerprint(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Fingerprint:
    """The fingerprint of the rows of `batches` over `columns`."""
    names = list(columns)
    rebuilt = map(_rebuilt, batches)
    return sum(
        (Fingerprint.of_sum(_native.fingerprint(batch, names), batch.num_rows) for batch in rebuilt),
        Fingerprint(),
    )


def fingerprints(
    batches: Iterable[pa.RecordBatch], columns: Sequence[str], by: str
) -> dict[str | None, Fingerprint]:
    """The fingerprint of the rows of `batches` over `columns`, for each value of the string column `by`."""
    found: dict[str | None, Fingerprint] = {}
    for batch in map(_rebuilt, batches):
        column = batch.column(by)
        keys = column.unique().to_pylist()
        for key in keys:
            alike = pc.is_null(column) if key is None else pc.equal(column, key)
            of_key = batch.filter(alike) if len(keys) > 1 else batch
            found[key] = found.get(key, Fingerprint()) + fingerprint([of_key], columns)
    return found


def _rebuilt(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with its columns of empty lists built anew.

    Spark's Arrow writer leaves out the offsets of a child array without values, and the reader of that
    memory takes for offsets what lies there. Such a column holds no value, so building it anew is cheap.
    """
    columns = [pa.array(it.to_pylist(), it.type) if _is_hollow(it) else it for it in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _is_hollow(column: pa.Array) -> bool:
    """Whether `column` is a list or map, or a struct of one, whose child has no values."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return len(column.values) == 0 or _is_hollow(column.values)
    if pa.types.is_map(kind):
        return len(column.keys) == 0
    if pa.types.is_struct(kind):
        return any(_is_hollow(column.field(number)) for number in range(kind.num_fields))
    return False
