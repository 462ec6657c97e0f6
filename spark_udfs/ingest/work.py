"""Documents and rejected records from items of work: the ingest stage inside Spark's Python workers.

An item of work names some files of one place and the origin of their documents. It is small (names, no
content), so that the driver can list millions of files for the executors to read. The reader of its `format`
(`spark_udfs.ingest.registry`) turns an item into rows of `SCAN`.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from spark_udfs.ingest.files import Input
from spark_udfs.ingest.markup import Markup, reject_pages
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.rows import Origin, Row, bounded, in_batches

# `root` and `names` are paths in the operating system's bytes, which need not be UTF-8.
WORK = pa.schema(
    [
        ("number", pa.int64()),
        ("format", pa.string()),
        ("source", pa.string()),
        ("repository", pa.string()),
        ("revision", pa.string()),
        ("license", pa.string()),
        ("language", pa.string()),
        ("metadata", pa.map_(pa.string(), pa.string())),
        ("place", pa.binary()),  # pickled
        ("names", pa.list_(pa.binary())),
        ("part", pa.binary()),  # of the only file, pickled; null for whole files
    ]
)


def read_work(
    work: Iterable[pa.RecordBatch], options: object, limit: int | None = None, markup: Markup = "keep"
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN` for batches of `WORK`; `options` are the reader's, None without any.

    With `markup: reject` documents that are web pages are rejected records.

    With a `limit` these are the first `limit` records, documents or rejected, of all items in their order;
    later files are not opened.
    """
    tasks = (task for batch in work for task in batch.to_pylist())
    if limit is None:
        return in_batches(_rows(tasks, options, markup))
    return in_batches(_first_rows(tasks, options, markup, limit))


def _rows(tasks: Iterable[dict[str, Any]], options: object, markup: Markup) -> Iterator[Row]:
    for task in tasks:
        for source in inputs_of(task):
            yield from rows_of_input(source, task["format"], options, markup)


def _first_rows(
    tasks: Iterable[dict[str, Any]], options: object, markup: Markup, limit: int
) -> Iterator[Row]:
    n_left = limit

    def first(rows: Iterator[Row]) -> Iterator[Row]:
        nonlocal n_left
        for row in islice(rows, n_left):
            n_left -= 1
            yield row

    for task in sorted(tasks, key=lambda task: task["number"]):
        for source in inputs_of(task):
            if not n_left:
                return
            yield from rows_of_input(source, task["format"], options, markup, first)


def inputs_of(task: dict[str, Any]) -> Iterator[Input]:
    """Yield the files of a row of `WORK`."""
    origin = Origin(
        source=task["source"],
        repository=task["repository"],
        revision=task["revision"],
        license=task["license"],
        language=task["language"],
        metadata=dict(task["metadata"] or ()),
    )
    place = pickle.loads(task["place"])
    part = None if task["part"] is None else pickle.loads(task["part"])
    return (Input(origin, place, name, part=part) for name in task["names"])


def rows_of_input(
    source: Input,
    format: str,
    options: object,
    markup: Markup,
    selection: Callable[[Iterator[Row]], Iterator[Row]] = iter,
) -> Iterator[Row]:
    """Yield the rows of a file or a part; the last one of some parts has no id, but facts on the part."""
    reader = READERS[format]
    numbers: list[Row] = []
    every_row = _without_numbers(selection(reader.rows_of(source, options)), numbers)
    rows = every_row
    if markup == "reject" and not reader.of_pages:
        rows = reject_pages(rows, source, numbers_of_part=reader.numbers_of_part)
    share = 1.0 if source.part is None else source.part.share
    for row in bounded(rows, source.origin, source.fault_key, share):
        if reader.many_records:
            row["file"] = source.key
        if source.part is not None and source.part.begin:
            row["part_at"] = source.part.begin
        yield row
    if source.part is not None:
        deque(every_row, maxlen=0)  # lines behind too many rejected ones count
        yield from numbers


def _without_numbers(rows: Iterator[Row], numbers: list[Row]) -> Iterator[Row]:
    """Yield the rows but the last one of a part, which goes into `numbers`."""
    for row in rows:
        if "doc_id" in row:
            yield row
        else:
            numbers.append(row)
