"""The queue of a job: a folder of the warehouse that workers of any machine share, without a server.

    synthesis/<dataset>/<job>/job.json                     all that decides the records; created once
    synthesis/<dataset>/<job>/request.json                 size, priority and snapshot of the last run
    synthesis/<dataset>/<job>/leases/<slice>/<attempt>     the worker that has a slice; never replaced
    synthesis/<dataset>/<job>/beats/<worker>               replaced by a live worker, a few times in its term
    synthesis/<dataset>/<job>/notes/<slice>/<attempt>      the item in progress, after an attempt has died
    synthesis/<dataset>/<job>/results/<slice>.parquet      the outcomes; created once, whole

A lease only saves work. The create of a result holds the records together: the first worker to finish a slice
has made its result for good, and every other that still works on the slice is too late. Nobody works again on
a slice with a result.

Leases balance the load: a worker takes the next slice when it has finished one, be it fast or slow, early
or late. They survive the restart of every process, and a balancer would have to be one more process
that knows who is alive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from factory.errors import DamagedFile, NotFound
from factory.lake.place import require_place
from factory.settings import Settings
from factory.synthesis.job import Job, Slice
from factory.synthesis.objects import PutAnswer, QueueObjects, WarehouseObjects, create_once

FOLDER = "synthesis"
_JOB, _REQUEST = "job.json", "request.json"
_LEASES, _BEATS, _NOTES, _RESULTS = "leases", "beats", "notes", "results"
_END = ".parquet"


@dataclass(frozen=True)
class Lease:
    """A slice that a worker has; `attempt` counts from 1."""

    work: Slice
    attempt: int

    @property
    def name(self) -> str:
        """The name of its object."""
        return f"{_LEASES}/{self.work.name}/{self.attempt:06}"

    @property
    def note(self) -> str:
        """The name of the object with its item in progress."""
        return f"{_NOTES}/{self.work.name}/{self.attempt:06}"


@dataclass(frozen=True)
class QueueListing:
    """The names of a queue at one moment."""

    leases: Mapping[Slice, Sequence[int]] = field(default_factory=dict)
    """The attempts at each slice, ascending; each but the last has died."""
    results: frozenset[Slice] = frozenset()
    beats: Mapping[str, str] = field(default_factory=dict)
    """For each worker a word that changes when the worker moves."""
    notes: frozenset[str] = frozenset()
    versions: Mapping[str, str] = field(default_factory=dict)
    """By name, a word that changes when the object is replaced."""

    def newest(self, work: Slice) -> Lease | None:
        """Return the last lease of a slice, None if nobody has had it."""
        attempts = self.leases.get(work)
        return Lease(work, attempts[-1]) if attempts else None


@dataclass(frozen=True)
class Status:
    """How far a queue has come."""

    slices: int
    done: int
    leased: int
    deaths: int
    """Attempts that ended without a result."""
    items: int
    items_done: int

    @property
    def free(self) -> int:
        """Slices that nobody has."""
        return self.slices - self.done - self.leased


class Queue:
    """The queue of one job. Raises MachineError where the store does not serve."""

    def __init__(self, settings: Settings, job: Job, objects: QueueObjects | None = None) -> None:
        self.settings = settings
        self.job = job
        self.folder = f"{FOLDER}/{job.dataset}/{job.id}"
        self._objects = objects or WarehouseObjects(settings, self.folder)

    @classmethod
    def create(cls, settings: Settings, job: Job) -> Queue:
        """Return the queue of a job; one that exists keeps its results and gets the size of this job."""
        require_place(settings)
        queue = cls(settings, job)
        queue.announce()
        return queue

    @classmethod
    def open(cls, settings: Settings, dataset: str, job_id: str) -> Queue:
        """Return a queue that exists; raises NotFound."""
        require_place(settings)
        folder = f"{FOLDER}/{dataset}/{job_id}"
        return cls(settings, _stored_job(WarehouseObjects(settings, folder), folder))

    def announce(self) -> None:
        """Put the job where workers find it."""
        create_once(self._objects, _JOB, self.job.identity_json())
        self._objects.put(_REQUEST, self.job.request_json())

    @cached_property
    def uri(self) -> str:
        """The location of the folder."""
        return f"{self.settings.warehouse_uri}/{self.folder}"

    def refresh(self) -> Job:
        """Read the job again, because a run may have made it larger; raises NotFound if it is gone."""
        self.job = _stored_job(self._objects, self.folder)
        return self.job

    def listing(self) -> QueueListing:
        """Read all names, in one request for a thousand of them."""
        versions = self._objects.versions()
        leases: dict[Slice, list[int]] = {}
        results, beats, notes = set(), {}, set()
        for name, version in versions.items():
            kind, _, rest = name.partition("/")
            if kind == _LEASES:
                work, _, attempt = rest.partition("/")
                leases.setdefault(Slice.parse(work), []).append(int(attempt))
            elif kind == _RESULTS:
                results.add(Slice.parse(rest.removesuffix(_END)))
            elif kind == _BEATS:
                beats[rest] = version
            elif kind == _NOTES:
                notes.add(name)
        return QueueListing(
            {work: sorted(attempts) for work, attempts in leases.items()},
            frozenset(results),
            beats,
            frozenset(notes),
            versions,
        )

    def status(self) -> Status:
        """Return how far the job has come, from names alone."""
        listing, slices = self.listing(), self.job.slices()
        done = [work for work in slices if work in listing.results]
        n_leased = sum(work in listing.leases and work not in listing.results for work in slices)
        deaths = sum(len(listing.leases[work]) - 1 for work in slices if work in listing.leases)
        return Status(
            slices=len(slices),
            done=len(done),
            leased=n_leased,
            deaths=deaths,
            items=self.job.size,
            items_done=sum(map(len, done)),
        )

    def exists(self) -> bool:
        """Whether nobody has removed the queue."""
        return self._objects.get(_JOB) is not None

    def clean(self) -> None:
        """Remove the queue; a worker that is still there ends with a sentence, and sweeps behind itself."""
        self._objects.delete([_JOB])  # first: without it workers end
        self._objects.delete([*self._objects.versions()])

    def sweep(self) -> None:
        """Remove all that workers have stored in a queue which was removed meanwhile."""
        names = self._objects.versions()
        self._objects.delete([name for name in names if name not in (_JOB, _REQUEST)])

    # -- what workers do

    def lease(self, lease: Lease, worker: str, host: str) -> bool:
        """Take a slice; return whether it is ours."""
        body = json.dumps({"worker": worker, "host": host}).encode()
        return create_once(self._objects, lease.name, body)

    def holder(self, lease: Lease) -> str | None:
        """Return the worker that has a lease, None if it was dropped meanwhile."""
        body = self._objects.get(lease.name)
        if body is None:
            return None
        try:
            return str(json.loads(body)["worker"])
        except (ValueError, LookupError, TypeError):
            return ""  # cut by a power failure; nobody of this name moves

    def drop(self, lease: Lease) -> None:
        """Give back a slice without a result."""
        self._objects.delete([lease.name, lease.note])

    def finish(self, lease: Lease, content: bytes) -> None:
        """Store the outcomes of a slice, unless another worker was first."""
        name = f"{_RESULTS}/{lease.work.name}{_END}"
        while self._objects.create(name, content) is PutAnswer.UNCLEAR:
            if self._objects.get(name) is not None:
                return

    def beat(self, worker: str, body: bytes) -> None:
        """Show that a worker is alive; `body` differs from the last."""
        self._objects.put(f"{_BEATS}/{worker}", body)

    def bury(self, worker: str) -> None:
        """Remove the sign of life of a worker that has ended, so that others take its slices at once."""
        self._objects.delete([f"{_BEATS}/{worker}"])

    def note(self, lease: Lease, position: int) -> None:
        """Record the item that is begun, at a slice of dead workers."""
        self._objects.put(lease.note, str(position).encode())

    def deaths_before(self, lease: Lease, listing: QueueListing) -> dict[int, int]:
        """Return how many workers before this lease died at which item, as far as that is on record."""
        deaths: dict[int, int] = {}
        for attempt in listing.leases.get(lease.work, ()):
            before = Lease(lease.work, attempt)
            if attempt < lease.attempt and before.note in listing.notes:
                body = self._objects.get(before.note) or b""
                if body.isdigit():
                    deaths[int(body)] = deaths.get(int(body), 0) + 1
        return deaths

    def result_uri(self, work: Slice) -> str:
        """Return the location of the outcomes of a slice."""
        return f"{self.uri}/{_RESULTS}/{work.name}{_END}"

    def result_bytes(self, work: Slice) -> bytes | None:
        """Return the outcomes of a slice as they are stored."""
        return self._objects.get(f"{_RESULTS}/{work.name}{_END}")


def queues(settings: Settings, dataset: str | None = None) -> Iterator[Queue]:
    """Yield the queues of a lake, or of one dataset, by dataset and then by age, the newest last."""
    require_place(settings)
    names = WarehouseObjects(settings, FOLDER).versions(dataset or "")
    ages = {}
    for name, version in names.items():
        parts = name.split("/")
        if len(parts) == 3 and parts[2] == _REQUEST:
            ages[parts[0], parts[1]] = version
    for owner, job_id in sorted(ages, key=lambda key: (key[0], ages[key])):
        try:
            yield Queue.open(settings, owner, job_id)
        except NotFound:
            continue  # cleaned meanwhile


def _stored_job(objects: QueueObjects, folder: str) -> Job:
    identity, request = objects.get(_JOB), objects.get(_REQUEST)
    if identity is None or request is None:
        raise NotFound(
            f"The warehouse has no queue {folder}: a newer job has replaced it, or somebody removed "
            "it. Materialize the dataset to make it again."
        )
    try:
        return Job.parse(identity, request)
    except DamagedFile as error:
        raise DamagedFile(f"{folder}/{_JOB}: {error}") from error
