"""Verdicts on documents from their signals alone, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from factory import _native


def decide(
    batches: Iterator[pa.RecordBatch], limits: list[tuple[str, float, float]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield rows of `schema` (doc_id, kept, rejections, partition) for (doc_id, partition, value, value,
    ...).

    The float64 values belong to `limits` in order: a rule's name, the lowest and the highest value it allows.
    A document that fails no rule is kept; a null value fails none.
    """
    for batch in batches:
        values = batch.select(list(range(2, batch.num_columns)))
        rejections = _native.rejections(values, limits)
        yield pa.RecordBatch.from_arrays(
            [
                batch.column(0),
                pc.equal(pc.list_value_length(rejections), 0),
                rejections.cast(schema.field("rejections").type),
                batch.column(1),
            ],
            schema=schema,
        )
