"""The choice of Parquet files that stay where they are, because Iceberg can read them there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace

from factory.ingest.listing import Work
from factory.lake.files.location import SCHEME, local_path
from factory.lake.registration import Candidates
from spark_udfs.ingest.files import Input, key_of, opened
from spark_udfs.ingest.parquet_schema import refuse_deep_footer
from spark_udfs.ingest.rows import BadRecord


def registering(
    work: Iterable[Work], candidates: Candidates, warehouse: str, limit: int | None = None
) -> Iterator[Work]:
    """Yield the items, with the format `registered` for every file that qualifies.

    Files behind the first `limit` rows are not opened: they are read only if files before them are damaged.
    """
    reachable = warehouse.startswith(SCHEME)
    for work_of_file in work:
        if limit is not None and candidates.rows >= limit:
            yield work_of_file
            continue
        [name] = work_of_file.names
        path = local_path(work_of_file.place.location(name))
        if path is None:
            candidates.refused[key_of(os.fsdecode(name))] = "it is not on a disk of this machine"
        elif not reachable:
            candidates.refused[key_of(os.fsdecode(name))] = (
                f"the warehouse {warehouse} is on another storage than this file"
            )
        elif danger := _danger(Input(work_of_file.origin, work_of_file.place, name)):
            candidates.refused[key_of(os.fsdecode(name))] = danger
        elif candidates.offer(os.fsencode(path), key_of(os.fsdecode(name))):
            work_of_file = replace(work_of_file, format="registered")
        yield work_of_file


def _danger(source: Input) -> str | None:
    """Say why this process must not even read the footer of a Parquet file; its reader records it too."""
    try:
        with opened(source) as file:
            refuse_deep_footer(file)
    except BadRecord as bad:
        return bad.detail
    return None
