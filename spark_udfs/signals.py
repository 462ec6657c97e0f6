"""The signals of documents: every value the filter rules look at, measured in Spark's Python workers.

Takes batches of (doc_id, text, partition), gives batches of `signals_schema(names)`. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from factory import _native
from factory.lake.schemas import signals_schema


def measure(batches: Iterator[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The signals `names` of every document, a row a document, in the order they come.

    A document without a text has null values. Raises ValueError for a name the native pass does not know.
    """
    schema = signals_schema(names).columns
    for batch in batches:
        values = _native.text_signals(batch.column("text"), list(names))
        columns = [batch.column("doc_id"), *values.columns, batch.column("partition")]
        yield pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )
