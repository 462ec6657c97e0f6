"""Documents and rejected records from items of work: the ingest stage inside Spark's Python workers.

An item of work names some files below one folder and the origin of their documents. It is small (names, no
content), so that the driver can list millions of files for the executors to read. The reader for its `format`
turns an item into rows of `SCAN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from spark_udfs.ingest.archive import archive_file
from spark_udfs.ingest.files import Input, text_file
from spark_udfs.ingest.installation import description_file, topics_file
from spark_udfs.ingest.jsonl import jsonl_file
from spark_udfs.ingest.parquet import parquet_file
from spark_udfs.ingest.records import Fields
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


OF_MANY_RECORDS = frozenset({"jsonl", "parquet", "registered", "archive"})


def read_work(work: Iterable[pa.RecordBatch], fields: Fields) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN` for batches of `WORK`; `fields` maps the fields of a record."""
    return in_batches(_rows(work, fields))


def _rows(work: Iterable[pa.RecordBatch], fields: Fields) -> Iterator[Row]:
    readers: dict[str, Callable[[Input], Iterator[Row]]] = {
        "text": text_file,
        "description": description_file,
        "topics": topics_file,
        "jsonl": partial(jsonl_file, fields=fields),
        "parquet": partial(parquet_file, fields=fields),
        "registered": partial(parquet_file, fields=fields, registered=True),
        "archive": archive_file,
    }
    for batch in work:
        for item in batch.to_pylist():
            origin = Origin(
                source=item["source"],
                repository=item["repository"],
                revision=item["revision"],
                license=item["license"],
                language=item["language"],
                metadata=dict(item["metadata"] or ()),
            )
            read = readers[item["format"]]
            for name in item["names"]:
                source = Input(origin, item["root"], name)
                for row in bounded(read(source), origin, source.key):
                    if item["format"] in OF_MANY_RECORDS:
                        row["file"] = source.key
                    yield row
