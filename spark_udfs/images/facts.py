"""Rows of IMAGE_FACTS for the pictures of documents, each decoded whole once: the work of Spark's workers.

One picture at a time is decoded, within the bound on its pixels that its header passed when it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from factory.lake.schemas.images import IMAGE_FACTS, IMAGES
from spark_udfs.pictures import fault_of, header_of


def image_facts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield a row of IMAGE_FACTS per picture of batches of `doc_id`, `partition` and `images`."""
    for batch in batches:
        for number_of_row in range(batch.num_rows):  # the bytes of one document at a time become objects
            [row] = batch.slice(number_of_row, 1).to_pylist()
            rows = [
                {
                    "doc_id": row["doc_id"],
                    "partition": row["partition"],
                    "number": number,
                    "n_bytes": len(image["content"]),
                    **{name: image[name] for name in ("name", "media_type", "width", "height", "patches")},
                    **_decoded(image["content"]),
                }
                for number, image in enumerate(row[IMAGES] or ())
            ]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=IMAGE_FACTS.columns)


def _decoded(content: bytes) -> dict[str, object]:
    problem = fault_of(content)
    mode = header_of(content).mode if problem is None else None
    return {"mode": mode, "is_readable": problem is None, "problem": problem}
