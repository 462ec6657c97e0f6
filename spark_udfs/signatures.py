"""Signatures of texts, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native
from spark_udfs.shared import Shared


def sign(
    batches: Iterable[pa.RecordBatch],
    idf: Shared[bytes],
    kind: str,
    max_distinct: int,
    scheme: str,
    values: int,
    value_bits: int,
    seed: int,
) -> Iterator[pa.RecordBatch]:
    """Every column but the last, which is `text`, then (signature, n_tokens, n_distinct) of the text."""
    for batch in batches:
        signed = _native.sign_texts(
            batch.column("text"), idf.value, kind, max_distinct, scheme, values, value_bits, seed
        )
        kept = batch.select(batch.schema.names[:-1])
        yield pa.RecordBatch.from_arrays(
            [*kept.columns, *signed.columns], schema=pa.schema([*kept.schema, *signed.schema])
        )
