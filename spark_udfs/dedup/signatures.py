"""Signatures of bags, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.broadcast import Shared
from spark_udfs.hstack import hstack


def sign(
    batches: Iterable[pa.RecordBatch],
    idf: Shared[pa.UInt8Array],
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> Iterator[pa.RecordBatch]:
    """Every column but `bag`, then (signature, n_distinct) of the bag."""
    for batch in batches:
        signed = _native.sign_packed(batch.column("bag"), idf.value, scheme, values, value_bits, seed)
        yield hstack(batch.drop_columns("bag"), signed)
