"""The cost of a queue itself: leases, results and listings of a million items that do nothing.

Four workers take slices in turn, in one process, so that they meet at leases as processes do. A result has
the bytes of a real slice. Of a store requests are counted: a listing is one for each thousand names.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.console import Console

from bench.batches.stores import PLACES, Place
from bench.harness import Report, Row, table
from factory.synthesis.collect import results_of
from factory.synthesis.job import Job
from factory.synthesis.kind import NewRecord, WorkItem
from factory.synthesis.leases import Leases, Tenure, Watch
from factory.synthesis.objects import PutAnswer, QueueObjects, WarehouseObjects
from factory.synthesis.queue import FOLDER, Queue
from factory.synthesis.results import Attempt, SliceWriter

ITEMS = int(os.environ.get("ITEMS", "1000000"))
SLICE_ITEMS = 100
WORKERS = 4
_NAMES_A_REQUEST = 1000
CAVEATS = [
    "`queue`: CPU seconds of the clients, not of the store. Signs of life are left out: eight requests of "
    "each worker in a minute. A run also lists the queue once a second, at the cost of one listing.",
]


@dataclass
class CountedObjects:
    """Objects of a queue, with the number of requests to their store."""

    objects: QueueObjects
    requests: int = 0

    def get(self, name: str) -> bytes | None:
        """Count and pass on."""
        self.requests += 1
        return self.objects.get(name)

    def create(self, name: str, body: bytes) -> PutAnswer:
        """Count and pass on."""
        self.requests += 1
        return self.objects.create(name, body)

    def put(self, name: str, body: bytes) -> None:
        """Count and pass on."""
        self.requests += 1
        self.objects.put(name, body)

    def delete(self, names: Iterable[str]) -> None:
        """Count a request for each thousand names, and pass on."""
        name_list = list(names)
        self.requests += -(-len(name_list) // _NAMES_A_REQUEST)
        self.objects.delete(name_list)

    def versions(self, prefix: str = "") -> Mapping[str, str]:
        """Count a request for each thousand names, and pass on."""
        names = self.objects.versions(prefix)
        self.requests += max(1, -(-len(names) // _NAMES_A_REQUEST))
        return names


@dataclass(frozen=True)
class Cost:
    """The cost of a phase."""

    cpu_s: float
    seconds: float
    requests: int


def measure(progress: Console) -> Report:
    """Work a queue off on each store, and clean it."""
    report = Report(CAVEATS, f"`queue`: {ITEMS:,} items in slices of {SLICE_ITEMS}, {WORKERS} workers")
    lines = table("The queue itself", "store | phase | CPU s | seconds | requests | requests a slice")
    n_slices = -(-ITEMS // SLICE_ITEMS)
    for place_of in PLACES:
        with place_of() as place:
            progress.print(f"{place.name}: {n_slices:,} slices")
            costs = costs_of(place, report)
        for phase, cost in costs.items():
            a_slice = f"{cost.requests / n_slices:.3f}"
            lines.add_row(
                place.name, phase, f"{cost.cpu_s:.2f}", f"{cost.seconds:.1f}", f"{cost.requests:,}", a_slice
            )
            report.rows.append(Row(f"{place.name}: CPU, {phase}", round(cost.cpu_s, 3), "s"))
            report.rows.append(Row(f"{place.name}: requests, {phase}", cost.requests, "requests"))
    report.tables.append(lines)
    return report


def costs_of(place: Place, report: Report) -> dict[str, Cost]:
    """Work a queue off and clean it; return the cost of each phase by its name."""
    settings = place.settings.model_copy(update={"warehouse": f"{place.address}/lake"})
    job = Job("bench", "raw.items", 1, "content", "nothing", "1", ITEMS, slice_items=SLICE_ITEMS)
    objects = CountedObjects(WarehouseObjects(settings, f"{FOLDER}/{job.dataset}/{job.id}"))
    queue = Queue(settings, job, objects)
    costs = {}
    meter = _Meter(objects)
    queue.announce()
    n_leases = _work_off(queue)
    costs["leases and results"] = meter.cost()
    report.check(f"{place.name}: each slice is leased once", n_leases == len(job.slices()))
    status = queue.status()
    costs["one listing"] = meter.cost()
    report.check(f"{place.name}: every slice has a result", status.done == status.slices)
    files = results_of(queue).files
    costs["collection"] = meter.cost()
    report.check(f"{place.name}: a file for each slice", len(set(files)) == status.slices)
    queue.clean()
    costs["cleaning"] = meter.cost()
    report.check(f"{place.name}: nothing is left", not queue.listing().versions)
    return costs


class _Meter:
    """CPU seconds, seconds and requests since the last question."""

    def __init__(self, objects: CountedObjects) -> None:
        self._objects = objects
        self._last = self._now()

    def cost(self) -> Cost:
        """Return the cost since the last call."""
        before, self._last = self._last, self._now()
        cpu_s, seconds, requests = (now - then for now, then in zip(self._last, before, strict=True))
        return Cost(cpu_s, seconds, int(requests))

    def _now(self) -> tuple[float, float, float]:
        return time.process_time(), time.monotonic(), self._objects.requests


def _work_off(queue: Queue) -> int:
    """Let workers take slices in turn until none is left; return their number of leases."""
    content = _content()
    workers = []
    for number in range(WORKERS):
        queue.beat(f"worker {number}", b"1")
        watch = Watch(3600.0, time.monotonic)
        workers.append(Leases(queue, f"worker {number}", "host", watch, random.Random(number)))
    n_leases, turns = 0, itertools.cycle(workers)
    while isinstance(tenure := next(turns).take(), Tenure):
        queue.finish(tenure.lease, content)
        n_leases += 1
    return n_leases


def _content() -> bytes:
    """The result of a slice with a record for each item."""
    writer = SliceWriter(Attempt(1, "worker", "host"))
    for position in range(SLICE_ITEMS):
        document = WorkItem(f"{position:032x}", "items", f"item {position}", "")
        writer.add(position, document, [NewRecord("record", f"text {position} " * 20)], 0.1)
    return writer.close()
