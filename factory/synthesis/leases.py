"""The slices that a worker takes: free ones at random, then the slices of dead workers.

A worker has died if its sign of life is gone, or has not changed for a term. The term is measured by the
watcher's own monotonic clock from the moment when it first saw the sign: the clocks of two machines are never
compared, and a sign is only compared with itself.

A worker lists the queue when it starts, when it has nothing left to try, and when its picture has cost it as
many lost leases as a listing would: with w workers a slice costs each of them less than two requests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from factory.synthesis.job import Slice
from factory.synthesis.queue import Lease, Queue, QueueListing

_NAMES_A_REQUEST = 1000


@dataclass(frozen=True)
class Tenure:
    """A slice to work on; `deaths` counts by item the workers that died at it, as far as is on record."""

    lease: Lease
    deaths: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Wait:
    """Every slice without a result has a worker that moves; ask again later."""


@dataclass
class Watch:
    """Tells which workers have died, from what listings show of them."""

    term_s: float
    clock: Callable[[], float]
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    _missed: dict[str, int] = field(default_factory=dict)
    _looks: int = 0

    def look(self, listing: QueueListing) -> None:
        """Take in the signs of life of a listing."""
        now = self.clock()
        self._looks += 1
        for worker, sign in listing.beats.items():
            self._missed.pop(worker, None)
            if worker not in self._seen or self._seen[worker][0] != sign:
                self._seen[worker] = (sign, now)
        for worker in self._seen.keys() - listing.beats.keys():
            del self._seen[worker]

    def is_dead(self, worker: str) -> bool:
        """Whether a worker has not moved for a term, or is missing from two listings.

        One listing takes several requests: a worker may have come after the first.
        """
        if worker in self._seen:
            return self.clock() - self._seen[worker][1] >= self.term_s
        return self._missed.setdefault(worker, self._looks) < self._looks


class Leases:
    """The slices of a queue, as one worker sees them.

    `worker` has shown a sign of life before the first `take`.
    """

    def __init__(
        self, queue: Queue, worker: str, host: str, watch: Watch, draws: random.Random | None = None
    ) -> None:
        self._queue, self._worker, self._host, self._watch = queue, worker, host, watch
        self._random = draws or random.Random()
        self._free: list[Slice] = []
        self._next = 0
        self._lost, self._patience = 0, 0
        self._holders: dict[tuple[Lease, str], str | None] = {}
        self._listing = QueueListing()
        self._undone: Sequence[Slice] = ()
        self.left = 0
        """Slices without a result when the queue was last listed."""

    def take(self) -> Tenure | Wait | None:
        """Return the next slice to work on; None once all slices have results.

        Raises NotFound if the queue is gone.
        """
        while True:
            while self._free and self._lost <= self._patience:
                lease = Lease(self._pick(), 1)
                if self._queue.lease(lease, self._worker, self._host):
                    return Tenure(lease)
                self._lost += 2  # the create, and the read that tells whose it is
                self._next = self._random.randrange(len(self._free)) if self._free else 0
            if not self._look():
                return None
            lease_of_dead = self._lease_of_dead()
            if lease_of_dead is not None:
                return Tenure(lease_of_dead, self._queue.deaths_before(lease_of_dead, self._listing))
            if not self._free:
                return Wait()

    def _pick(self) -> Slice:
        """Remove the next free slice: behind the last one, so that a repository stays with one worker."""
        self._next %= len(self._free)
        return self._free.pop(self._next)

    def _look(self) -> bool:
        """List the queue; return whether slices are left."""
        slices = self._queue.refresh().slices()
        listing = self._listing = self._queue.listing()
        self._watch.look(listing)
        undone = self._undone = [work for work in slices if work not in listing.results]
        self.left = len(undone)
        self._free = [work for work in undone if work not in listing.leases]
        self._next = self._random.randrange(len(self._free)) if self._free else 0
        names = sum(map(len, listing.leases.values())) + len(listing.results)
        self._lost, self._patience = 0, 2 + names // _NAMES_A_REQUEST
        return bool(undone)

    def _lease_of_dead(self) -> Lease | None:
        """Take over the slice of a dead worker, or one that is ours by a create with a lost answer."""
        for work in self._undone:
            newest = self._listing.newest(work)
            if newest is None:
                continue
            holder = self._holder(newest)
            if holder == self._worker:
                return newest
            if holder is not None and self._watch.is_dead(holder):
                successor = Lease(work, newest.attempt + 1)
                if self._queue.lease(successor, self._worker, self._host):
                    return successor
        return None

    def _holder(self, lease: Lease) -> str | None:
        """Return the worker that has a lease, None if it was dropped since the listing."""
        version = self._listing.versions.get(lease.name, "")
        if (lease, version) not in self._holders:
            self._holders[lease, version] = self._queue.holder(lease)
        return self._holders[lease, version]
