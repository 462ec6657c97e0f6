"""The choice of Parquet files that stay where they are, because Iceberg can read them there.

These are files on a disk for a warehouse on a disk, and objects of the store that has the warehouse: the keys
of the warehouse show the object that the reader of the input lists, by its size and ETag.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from factory.ingest.listing import Work
from factory.lake.files.location import local_path
from factory.lake.files.storage import FileVersion, stamp_of, version_of
from factory.lake.registration import Candidates
from spark_udfs.ingest.files import Input, key_of, opened
from spark_udfs.ingest.parquet_schema import refuse_deep_footer
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import BadRecord

_STORE = "s3://"


def registering(
    work: Iterable[Work], candidates: Candidates, warehouse: str, limit: int | None = None
) -> Iterator[Work]:
    """Yield the items, with the format `registered` for every file that qualifies.

    Files behind the first `limit` rows are not opened: they are read only if files before them are damaged.
    """
    for work_of_file in work:
        if limit is not None and candidates.rows >= limit:
            yield work_of_file
            continue
        [name] = work_of_file.names
        place, key = work_of_file.place, key_of(os.fsdecode(name))
        obstacle = _obstacle(place, name, warehouse, candidates.storage) or _danger(
            Input(work_of_file.origin, place, name)
        )
        if obstacle is not None:
            candidates.refused[key] = obstacle
        elif candidates.offer(place.location(name), key):
            work_of_file = replace(work_of_file, format="registered")
        yield work_of_file


def _obstacle(place: Place, name: bytes, warehouse: str, storage: Mapping[str, str]) -> str | None:
    """Say why the warehouse does not reach a file where it is."""
    file = place.location(name)
    if not (local_path(file) or file.startswith(_STORE)):
        return "it is neither on a disk nor in a store of S3"
    if (local_path(file) is None) != warehouse.startswith(_STORE):
        return f"the warehouse {warehouse} is on another storage than this file"
    if local_path(file) is None:
        try:
            state = place.state(name)
            if version_of(file, storage) == FileVersion(state.n_bytes, stamp_of(state.version)):
                return None
        except (OSError, KeyError):
            pass
        return f"the store of the warehouse {warehouse} has no such file for its keys"
    return None


def _danger(source: Input) -> str | None:
    """Say why this process must not even read the footer of a Parquet file; its reader records it too."""
    try:
        with opened(source) as file:
            refuse_deep_footer(file)
    except BadRecord as bad:
        return bad.detail
    return None
