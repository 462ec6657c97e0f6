"""Parts that did not begin where the part before them ended, read again from there.

The first part begins at the begin of its file. If each other part has its first record where the part before
it ended, the parts have the records of the file; a part that has not is read again. A part that could not be
read has no end: the part behind it begins at the next place that looks like a record, as behind any damage.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.part_borders import row_of_borders
from spark_udfs.ingest.rows import Row, in_batches
from spark_udfs.ingest.work import WORK, inputs_of, rows_of_input

FILES = pa.schema([*WORK, ("file", pa.string()), ("parts", pa.binary())])
"""Whole files with their parts, pickled; rows of `read_again` have the list `borders` of their parts, too."""


def read_again(
    files: Iterable[pa.RecordBatch], options: object, markup: Markup = "keep"
) -> Iterator[pa.RecordBatch]:
    """Yield batches of `SCAN`: the rows of parts that are read again, and a row without an id for each part.

    That row takes the place of all rows that the part gave before.
    """
    tasks = (task for batch in files for task in batch.to_pylist())
    return in_batches(row for task in tasks for row in _rows_of_file(task, options, markup))


def _rows_of_file(task: dict[str, Any], options: object, markup: Markup) -> Iterator[Row]:
    [source] = inputs_of(task)
    borders = {row["part_at"]: (row["row"], row["n_bytes"]) for row in task["borders"]}
    place: int | None = 0  # where the next record begins; None behind a part that could not be read
    for part in pickle.loads(task["parts"]):
        first, end = borders[part.begin]
        if place is None:
            place = place if first is None else end
            continue
        if place >= part.end:  # inside a record that began before the part
            if first is not None:
                yield row_of_borders(replace(source, part=part), None, part.end)
            continue
        if first == place or (first is None and end is None):
            place = end
            continue
        source_of_part = replace(source, part=part._replace(start=place))
        for row in rows_of_input(source_of_part, task["format"], options, markup):
            if "doc_id" not in row:
                place = row["n_bytes"]
            yield row
