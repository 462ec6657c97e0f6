"""The choice of Parquet files that stay where they are, because Iceberg can read them there.

These are files on a disk for a warehouse on a disk, and objects of the store that has the warehouse: the keys
of the warehouse show the object that the reader of the input lists, by its size and ETag.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice

from factory.ingest.listing import Work
from factory.lake.files.location import local_path
from factory.lake.files.storage import FileVersion, stamp_of, version_of
from factory.lake.registration import Candidates, FooterFacts
from spark_udfs.ingest.files import Input, key_of, opened
from spark_udfs.ingest.parquet_schema import footer_bytes, refuse_deep_footer
from spark_udfs.ingest.place import Place
from spark_udfs.ingest.rows import BadRecord

N_THREADS = 16  # which wait for the store most of the time
_STORE = "s3://"
SMALL_FOOTER_BYTES = 1 << 20  # at most; several are parsed at once


def registering(
    work: Iterable[Work], candidates: Candidates, warehouse: str, limit: int | None = None
) -> Iterator[Work]:
    """Yield the items, with the format `registered` for every file that qualifies.

    Files behind the first `limit` rows are not opened: they are read only if files before them are damaged.
    """
    files = iter(work)
    n_ahead = 2 * N_THREADS if limit is None else 1
    threads = ThreadPoolExecutor(N_THREADS, thread_name_prefix="footers")
    # Parsed, a footer takes twenty times its bytes, and each thread keeps the memory that it has freed.
    large_footers = ThreadPoolExecutor(1, thread_name_prefix="large-footers")
    footers: deque[tuple[Work, Future[FooterFacts]]] = deque()
    try:
        while limit is None or candidates.rows < limit:
            for file in islice(files, n_ahead - len(footers)):
                footers.append((file, threads.submit(_footer, file, warehouse, candidates, large_footers)))
            if not footers:
                break
            file, footer = footers.popleft()
            yield _offered(file, footer.result(), candidates)
    finally:
        large_footers.shutdown(wait=False, cancel_futures=True)
        threads.shutdown(cancel_futures=True)
    yield from files


def _offered(work_of_file: Work, footer: FooterFacts, candidates: Candidates) -> Work:
    [name] = work_of_file.names
    is_suitable = candidates.offer(work_of_file.place.location(name), key_of(os.fsdecode(name)), footer)
    return replace(work_of_file, format="registered") if is_suitable else work_of_file


def _footer(
    work_of_file: Work, warehouse: str, candidates: Candidates, large_footers: ThreadPoolExecutor
) -> FooterFacts:
    """Read the footer of a file, if the warehouse reaches it and it is safe."""
    [name] = work_of_file.names
    place = work_of_file.place
    if obstacle := _obstacle(place, name, warehouse, candidates.storage):
        return FooterFacts(obstacle)
    source = Input(work_of_file.origin, place, name)
    if _has_large_footer(source):
        return large_footers.submit(_safe_footer, source, candidates).result()
    return _safe_footer(source, candidates)


def _safe_footer(source: Input, candidates: Candidates) -> FooterFacts:
    if danger := _danger(source):
        return FooterFacts(danger)
    return candidates.footer(source.place.location(source.name))


def _has_large_footer(source: Input) -> bool:
    try:
        with opened(source) as file:
            return footer_bytes(file) > SMALL_FOOTER_BYTES
    except BadRecord:  # which `_danger` meets, too
        return False


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
