"""Documents made from documents: each text is read again, as if it were a file of some format.

    {name: pages, format: jsonl, text: html}     documents with texts in HTML
    {name: main, format: html, from: pages}      their main texts

A document has the key and the facts of its parent document, and the parent's id in `metadata.derived_from`.
Its source is named after both, so that their ids differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from factory.lake.schemas.ingest import RAW
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.rows import DERIVED_FROM, BadRecord, Origin, Row, in_batches, rejection

_CARRIED = ("repository", "path", "revision", "license", "fork_of", "stars", "created_at", "quality")


def derive(
    documents: Iterable[pa.RecordBatch], dataset: str, format: str, options: object
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN` for batches of raw documents; reads their texts as `format`."""
    rows = (row for batch in documents for row in batch.to_pylist())
    return in_batches(_derived(row, dataset, format, options) for row in rows)


def _derived(document: Row, dataset: str, format: str, options: object) -> Row:
    reader = READERS[format]
    assert reader.of_text is not None
    facts = {**dict(document["metadata"] or ()), DERIVED_FROM: document["doc_id"]}
    origin = Origin(f"{document['source']}/{dataset}", metadata=facts, language=document["language"])
    columns: dict[str, Any] = {name: document[name] for name in _CARRIED if document[name] is not None}
    try:
        row = reader.of_text(origin, document["key"], document["text"] or "", facts.get("url", ""), options)
    except BadRecord as bad:
        return rejection(origin, document["key"], bad, document["n_bytes"], (document["text"] or "").encode())
    return {**row, **columns}


READ = [name for name in RAW.names if name not in ("content", "content_hash", "media_type")]
"""The columns of raw documents that are read."""
