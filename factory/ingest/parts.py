"""Parts of large files, so that several tasks read one file.

The parts of a file follow from its size alone, so that its rows are the same on any number of cores.
"""

from __future__ import annotations

import os
import pickle
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from factory.ingest.listing import Work, as_table
from spark_udfs.ingest.files import key_of
from spark_udfs.ingest.frame_index import begins_frame, indexed_frames
from spark_udfs.ingest.markup import Markup
from spark_udfs.ingest.part_numbers import NUMBERED, OF_NUMBERS, whole_numbers
from spark_udfs.ingest.place import FilePart, FileState, Place
from spark_udfs.ingest.registry import READERS
from spark_udfs.ingest.remote.files import RemoteFiles
from spark_udfs.ingest.reread import FILES, read_again
from spark_udfs.ingest.rows import SCAN, BadRecord

PART_BYTES = 64 << 20  # at most
N_THREADS = 16  # that ask stores for states
_HEAD_BYTES = 16  # of a file, which tell its coding
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
    parts_of = partial(_parts_of, part_bytes=part_bytes)
    with ThreadPoolExecutor(N_THREADS, thread_name_prefix="parts") as threads:
        lists = threads.map(parts_of, (items[number] for number in large), large.values())
        in_pieces = dict(zip(large, lists, strict=True))
    for number, files in enumerate(items):
        parts = in_pieces.get(number)
        if not parts:
            yield files
            continue
        for part in parts:
            yield replace(files, part=part)


def _parts_of(files: Work, listed_state: FileState, part_bytes: int) -> list[FilePart]:
    """Return the parts of a large file, none if one reader reads all of it.

    One reads a file with a beginning that tells no reader of a part how to read it, one that needs an index
    of its frames and has none, and a file that has become empty since it was listed.
    """
    reader, name = READERS[files.format], files.names[0]
    try:
        state = _state_when_opened(files, listed_state)
        if not state.has_parts or not state.n_bytes:
            return []
        if reader.beginning is not None and not reader.beginning.match(files.place.head(name, _HEAD_BYTES)):
            return []
        borders = _borders(state.n_bytes, part_bytes)
        if reader.needs_index(files.place, os.fsdecode(name)):
            return _parts_between_frames(files, state, borders)
    except (OSError, BadRecord):  # its reader records that it is gone or changing
        return []
    return [FilePart(begin, end, state) for begin, end in pairwise(borders)]


def _parts_between_frames(files: Work, state: FileState, borders: list[int]) -> list[FilePart]:
    """Return parts that begin at the first frame behind each border, none without a true index of frames."""
    with files.place.open(files.names[0], FilePart(0, state.n_bytes, state)) as file:
        frames = indexed_frames(file)
        if not frames:
            return []
        firsts = {bisect_left(frames, border) for border in borders[1:-1]}
        starts = [frames[number] for number in sorted(firsts) if 0 < number < len(frames)]
        if not all(begins_frame(file, start) for start in starts):
            return []
    edges = [0, *starts, state.n_bytes]
    return [FilePart(begin, end, state, start=begin) for begin, end in pairwise(edges)]


def _state_when_opened(files: Work, state: FileState) -> FileState:
    """Return the state that a file with a listed state has when it is opened."""
    if not isinstance(files.place, RemoteFiles) or files.place.lists_versions:
        return state
    return files.place.of_one_commit().state(files.names[0])


def _borders(n_bytes: int, part_bytes: int) -> list[int]:
    """Return the borders of equal parts."""
    n_parts = max(-(-n_bytes // part_bytes), min(FEW_PARTS, -(-n_bytes * SMALLER // part_bytes)))
    return [n_bytes * number // n_parts for number in range(n_parts + 1)]


def has_own_numbers(files: Work) -> bool:
    """Whether the rows of an item have numbers of lines of its part."""
    return files.part is not None and READERS[files.format].numbers_of_part


def has_borders(files: Work) -> bool:
    """Whether the borders of a part must be compared with the part before it."""
    return files.part is not None and READERS[files.format].borders


def parts_read_again(
    scan: DataFrame, work: Iterable[Work], options: object, markup: Markup
) -> tuple[DataFrame, DataFrame]:
    """Return a scan with the records of parts that had to be read again in place of theirs, and these alone.

    `work` are the items of the scan. Read again are parts that began inside a record.
    """
    borders = (
        scan.where("doc_id IS NULL")
        .groupBy("source", "file")
        .agg(F.collect_list(F.struct("part_at", "row", "n_bytes")).alias("borders"))
    )
    files = scan.sparkSession.createDataFrame(files_with_parts(work), from_arrow_schema(FILES))
    again = (
        files.join(borders, ["source", "file"])
        .mapInArrow(partial(read_again, options=options, markup=markup), from_arrow_schema(SCAN))
        .persist(StorageLevel.MEMORY_AND_DISK)
    )
    replaced_parts = again.where("doc_id IS NULL").select("source", "file", "part_at")
    rows = scan.where("doc_id IS NOT NULL").join(
        F.broadcast(replaced_parts), ["source", "file", "part_at"], "left_anti"
    )
    return rows.unionByName(again.where("doc_id IS NOT NULL")), again


def files_with_parts(work: Iterable[Work]) -> pa.Table:
    """Return the files of parts with borders as rows of `FILES`, from items in the order of the parts."""
    items = (files for files in work if has_borders(files))
    by_file = [list(parts) for _, parts in groupby(items, lambda files: (files.place, files.names))]
    table = as_table(replace(parts[0], part=None) for parts in by_file)
    keys = [key_of(os.fsdecode(parts[0].names[0])) for parts in by_file]
    pickles = [pickle.dumps([files.part for files in parts]) for parts in by_file]
    return table.append_column("file", pa.array(keys, pa.string())).append_column(
        "parts", pa.array(pickles, pa.binary())
    )


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
