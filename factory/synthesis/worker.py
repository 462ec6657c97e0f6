"""A worker: takes slices from a queue and works on their items, until no slice is left.

    python -m factory.synthesis DATASET JOB [--folder FOLDER] [--term SECONDS]

Its steps on the way are few: a lease a slice, a result a slice, and a sign of life four times a term. SIGTERM
lets it finish the item, give back its slice and end with exit code 0. A killed worker loses its work on one
slice; another takes the slice a term after its last sign of life, or at once if its run reports it.
"""

from __future__ import annotations

import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from factory.errors import ConfigurationError, NotFound
from factory.settings import Settings
from factory.synthesis.beat import Beat
from factory.synthesis.item_clock import ItemCounter
from factory.synthesis.items import ItemSource, open_source
from factory.synthesis.job import Job
from factory.synthesis.kind import ItemOutcome, WorkerKind, WorkItem
from factory.synthesis.kinds.registry import load_kind
from factory.synthesis.leases import Leases, Tenure, Wait, Watch
from factory.synthesis.outcomes import KILLED_AFTER, outcomes_of, refusal_of_killer, refusal_of_textless
from factory.synthesis.queue import Queue
from factory.synthesis.results import Attempt, SliceWriter

TERM_S = 60.0
LEASED = "leased\n"
"""What the process of a worker reports when it has its first slice."""
_PAUSE_LOOK_S = 0.2  # between two looks at who wants the machine
_MOST_WAIT_S = 2.0  # between two looks at slices that others have


class Pause(Protocol):
    """Tells a worker to give way."""

    def holder(self) -> str | None:
        """Return the more pressing run that wants the machine, None if the worker may go on.

        It is asked between items, so it costs less than a millisecond.
        """


class NoPause:
    """Never asks to give way."""

    def holder(self) -> str | None:
        return None


@dataclass
class WorkDone:
    """A worker's finished slices and items, and the seconds for which it gave way."""

    slices: int = 0
    items: int = 0
    paused_s: float = 0.0


class Worker:
    """Works on the slices of a queue, in the thread that calls `run`.

    While a more pressing run wants the machine it pauses between two items and keeps its slice: its
    signs of life continue, so nobody repeats its work. With `leave_idle` it ends when no slice is free,
    instead of waiting for the slices of others, who may die. `at_lease` is called at its first slice.
    """

    def __init__(
        self,
        queue: Queue,
        source: ItemSource,
        kind: WorkerKind,
        *,
        name: str | None = None,
        pause: Pause | None = None,
        term_s: float = TERM_S,
        leave_idle: bool = False,
        counter: ItemCounter | None = None,
        at_lease: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name or new_name()
        self.work = WorkDone()
        self._queue, self._source, self._kind = queue, source, kind
        self._pause = pause or NoPause()
        self._counter = counter or ItemCounter()
        self._leave_idle, self._at_lease = leave_idle, at_lease
        self._host = socket.gethostname()
        self._wait_s = min(_MOST_WAIT_S, term_s / 10)
        self._leases = Leases(queue, self.name, self._host, Watch(term_s, time.monotonic), random.Random())
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let the worker end after its item; may be called by a signal handler or another thread."""
        self._stopped.set()

    def run(self) -> WorkDone:
        """Work until no slice is left or `stop` is called; raises the errors of the queue and of the kind."""
        while not self._stopped.is_set():
            tenure = self._leases.take()
            if tenure is None or (self._leave_idle and isinstance(tenure, Wait)):
                break
            if isinstance(tenure, Wait):
                self._stopped.wait(self._wait_s)
                continue
            self._at_lease()
            self._work_on(tenure)
        return self.work

    def _work_on(self, tenure: Tenure) -> None:
        """Finish a slice, or give it back."""
        lease = tenure.lease
        writer = SliceWriter(Attempt(lease.attempt, self.name, self._host))
        positions = range(lease.work.begin, lease.work.end)
        entries = self._source.items(lease.work.begin, lease.work.end)
        for position, (document, has_text) in zip(positions, entries, strict=True):
            if not self._may_go_on():
                self._queue.drop(lease)
                return
            start_s = time.perf_counter()
            deaths = tenure.deaths.get(position, 0)
            outcomes: list[ItemOutcome]
            if deaths >= KILLED_AFTER:
                outcomes = [refusal_of_killer(document, self._queue.job.item_seconds)]
            elif not has_text:
                outcomes = [refusal_of_textless(document)]
            else:
                if lease.attempt > 1:  # a worker died here, perhaps at one of the items
                    self._queue.note(lease, position)
                outcomes = self._outcomes(document)
            writer.add(position, document, outcomes, time.perf_counter() - start_s)
            self.work.items += 1
        self._queue.finish(lease, writer.close())
        self.work.slices += 1

    def _outcomes(self, document: WorkItem) -> list[ItemOutcome]:
        self._counter.begin()
        try:
            return outcomes_of(self._queue.job.kind, self._kind, document)
        finally:
            self._counter.rest()

    def _may_go_on(self) -> bool:
        """Wait while a more pressing run wants the machine; return whether to work on the next item."""
        if not self._stopped.is_set() and self._pause.holder() is not None:
            start_s = time.monotonic()
            while not self._stopped.wait(_PAUSE_LOOK_S) and self._pause.holder() is not None:
                pass
            self.work.paused_s += time.monotonic() - start_s
        return not self._stopped.is_set()


def new_name() -> str:
    """Return a name that no other worker has."""
    return uuid.uuid4().hex[:16]


def job_kind(job: Job, folder: Path) -> WorkerKind:
    """Return the kind of a job; raises ConfigurationError if it is of another version here."""
    kind = load_kind(job.kind, folder, job.options)
    if kind.version != job.version:
        raise ConfigurationError(
            f"Kind `{job.kind}` has version {kind.version} here, and dataset `{job.dataset}` is made by "
            f"version {job.version}. Use the same code on all machines, or materialize the dataset again."
        )
    return kind


def work(
    settings: Settings,
    queue: Queue,
    folder: Path,
    *,
    name: str | None = None,
    pause: Pause | None = None,
    term_s: float = TERM_S,
    parent: int | None = None,
    leave_idle: bool = False,
    counter: ItemCounter | None = None,
    at_lease: Callable[[], None] = lambda: None,
    at_start: Callable[[Worker], None] = lambda _: None,
) -> WorkDone:
    """Work on a queue in this process; return a count of it once no slice is left.

    Files of kinds are relative to `folder`. `at_start` is given the worker, for instance to stop it by a
    signal; `parent` is the process without which the worker ends, and `counter` shows it the items. Raises
    NotFound if the queue is removed meanwhile.
    """
    kind = job_kind(queue.job, folder)
    source = open_source(settings, queue.job)
    worker = Worker(
        queue,
        source,
        kind,
        name=name,
        pause=pause,
        term_s=term_s,
        leave_idle=leave_idle,
        counter=counter,
        at_lease=at_lease,
    )
    at_start(worker)
    try:
        with Beat(queue, worker.name, term_s, parent=parent, at_orphanhood=worker.stop):
            outcome = worker.run()
        queue.refresh()
    except NotFound:
        queue.sweep()
        raise
    return outcome
