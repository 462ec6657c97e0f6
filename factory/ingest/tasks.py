"""The tasks that read items of work, chosen so that they end at about the same time.

Spark starts tasks in the order of their numbers, so tasks with the most bytes come first. Without numbers
Spark deals rows out in turns, each time from a random task on: of four parts it gave two to one task and none
to another.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import pyarrow as pa

from factory.ingest.listing import Work
from spark_udfs.ingest.place import FileState, Place

TASK = pa.field("task", pa.int32())
TASKS_PER_CORE = 4  # more tasks than cores, because items differ in size
LARGE_PER_CORE = 16  # tasks of large files and their parts, each long enough to pay for its start
_OTHER_BYTES = 1 << 20  # a guess for items without a large file


def tasks_of(work: Sequence[Work], large: Mapping[Place, FileState], n_cores: int) -> list[int]:
    """Return the number of the task that reads each item; `large` has the states of large files."""
    sizes = [_bytes_of(files, large) for files in work]
    n_large = min(sum(size > 0 for size in sizes), LARGE_PER_CORE * n_cores)
    n_tasks = min(len(work), max(TASKS_PER_CORE * n_cores, n_large))
    loads = [(0, number) for number in range(n_tasks)]
    tasks = [0] * len(work)
    for position in sorted(range(len(work)), key=lambda position: -sizes[position]):
        n_bytes, number = heapq.heappop(loads)
        tasks[position] = number
        heapq.heappush(loads, (n_bytes + (sizes[position] or _OTHER_BYTES), number))
    return tasks


def _bytes_of(files: Work, large: Mapping[Place, FileState]) -> int:
    """Return the bytes of a large file, or of its part, that an item reads, zero for other items."""
    if files.part is not None:
        return files.part.end - files.part.begin
    state = large.get(files.place.below(files.names[0])) if len(files.names) == 1 else None
    return 0 if state is None else state.n_bytes
