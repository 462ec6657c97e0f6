"""Parts of large files, so that several tasks read one file.

The parts of a file follow from its size alone, so that its rows are the same on any number of cores.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.ingest.listing import Work
from spark_udfs.ingest.part_numbers import NUMBERED, OF_NUMBERS, whole_numbers
from spark_udfs.ingest.place import FilePart, FileState, Place
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.remote.files import RemoteFiles

PART_BYTES = 64 << 20  # at most
N_THREADS = 16  # that ask stores for states
FEW_PARTS, SMALLER = 32, 4  # a file of fewer parts has more, down to a quarter of that size


def in_parts(work: Iterable[Work], states: Mapping[Place, FileState], part_bytes: int) -> Iterator[Work]:
    """Yield the items, with one for each part of a file that its reader reads in parts.

    `states` has the large files.
    """
    items = list(work)
    large = {
        number: state
        for number, files in enumerate(items)
        if len(files.names) == 1
        and (state := states.get(files.place.below(files.names[0]))) is not None
        and READERS[files.format].in_parts(files.place, os.fsdecode(files.names[0]))
    }
    with ThreadPoolExecutor(N_THREADS, thread_name_prefix="states") as threads:
        states_now = threads.map(_state_when_opened, (items[number] for number in large), large.values())
        in_pieces = dict(zip(large, states_now, strict=True))
    for number, files in enumerate(items):
        state = in_pieces.get(number)
        if state is None:
            yield files
            continue
        for begin, end in pairwise(_borders(state.n_bytes, part_bytes)):
            yield replace(files, part=FilePart(begin, end, state))


def _state_when_opened(files: Work, state: FileState) -> FileState | None:
    """Return the state that a file with a listed state has for its readers, None if they read all of it."""
    if not isinstance(files.place, RemoteFiles) or files.place.lists_versions:
        return state
    try:
        own_state = files.place.of_one_commit().state(files.names[0])
    except OSError:  # its reader records that it is gone
        return None
    return own_state if own_state.has_parts else None


def _borders(n_bytes: int, part_bytes: int) -> list[int]:
    """Return the borders of equal parts."""
    n_parts = max(-(-n_bytes // part_bytes), min(FEW_PARTS, -(-n_bytes * SMALLER // part_bytes)))
    return [n_bytes * number // n_parts for number in range(n_parts + 1)]


def has_own_numbers(files: Work) -> bool:
    """Whether the rows of an item have numbers of lines of its part."""
    return files.part is not None and READERS[files.format].numbers_of_part


def with_numbers_of_files(scan: DataFrame) -> DataFrame:
    """Return a scan with numbers of lines that count from the begin of each file, not of its parts."""
    part = ["source", "file", "part_at"]
    parts_before = (
        Window.partitionBy("source", "file").orderBy("part_at").rowsBetween(Window.unboundedPreceding, -1)
    )
    n_before = F.coalesce(F.sum("row").over(parts_before), F.lit(0)).alias("n_before")
    parts = scan.where("doc_id IS NULL").select(*part, n_before)
    rows = scan.where("doc_id IS NOT NULL").join(F.broadcast(parts), part, "left")
    whole = F.arrow_udf(whole_numbers, from_arrow_schema(NUMBERED))(*OF_NUMBERS, "n_before")
    with_whole = rows.withColumn("whole", whole)
    columns = {name: F.col(f"whole.{name}") for name in NUMBERED.names}
    return with_whole.withColumns(columns).drop("whole", "n_before")
