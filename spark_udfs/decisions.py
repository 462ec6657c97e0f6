"""The keep rules, component by component, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from factory import _native
from spark_udfs.whole_groups import whole_groups

_ROWS_AT_ONCE = 50_000


def decide(batches: Iterable[pa.RecordBatch], keep: str) -> Iterator[pa.RecordBatch]:
    """(doc_id, kept, duplicate_of, similarity) of the documents of whole components.

    Rows are (component, doc_id, other, similarity), sorted by component: its documents, the best first,
    and its edges.
    """
    for components in whole_groups(batches, "component", _ROWS_AT_ONCE):
        yield _native.decide(components, keep)


def sweep(
    batches: Iterable[pa.RecordBatch], keep: str, thresholds: Sequence[float]
) -> Iterator[pa.RecordBatch]:
    """(threshold, similar_pairs, removed, removed_bytes, largest_component) of whole components.

    Rows are those of `decide` with (copies, n_bytes) of the documents.
    """
    for components in whole_groups(batches, "component", _ROWS_AT_ONCE):
        yield _native.sweep(components, keep, list(thresholds))
