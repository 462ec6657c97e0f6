"""Documents and rejected records from items of work: the ingest stage inside Spark's Python workers.

An item of work names some files below one folder and the origin of their documents. It is small (names, no
content), so that the driver can list millions of files for the executors to read. The reader of its `format`
(`spark_udfs.ingest.registry`) turns an item into rows of `SCAN`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from spark_udfs.ingest.files import Input
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.rows import Origin, Row, bounded, in_batches

# `root` and `names` are paths in the operating system's bytes, which need not be UTF-8.
WORK = pa.schema(
    [
        ("format", pa.string()),
        ("source", pa.string()),
        ("repository", pa.string()),
        ("revision", pa.string()),
        ("license", pa.string()),
        ("language", pa.string()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("root", pa.binary()),
        ("names", pa.list_(pa.binary())),
    ]
)


def read_work(work: Iterable[pa.RecordBatch], options: object) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN` for batches of `WORK`; `options` are those of the reader, None without any."""
    return in_batches(_rows(work, options))


def _rows(work: Iterable[pa.RecordBatch], options: object) -> Iterator[Row]:
    for batch in work:
        for task in batch.to_pylist():
            origin = Origin(
                source=task["source"],
                repository=task["repository"],
                revision=task["revision"],
                license=task["license"],
                language=task["language"],
                metadata=dict(task["metadata"] or ()),
            )
            reader = READERS[task["format"]]
            for name in task["names"]:
                source = Input(origin, task["root"], name)
                for row in bounded(reader.rows_of(source, options), origin, source.key):
                    if reader.many_records:
                        row["file"] = source.key
                    yield row
