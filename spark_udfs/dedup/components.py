"""Connected components of the edges a task sees, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory import _native


def components(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(doc_id, component) of every document in an edge (left, right); the label is the least id."""
    graph = _native.UnionFind()
    for batch in batches:
        graph.add(batch)
    yield graph.labels()
