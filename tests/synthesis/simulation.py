"""A queue in memory whose workers are stepped through call by call, with faults, in any interleaving.

Actors are threads. One runs at a time: before each call to the store an actor waits for its turn,
and the seed decides who is next, what goes wrong, and who is killed. So the real classes run unchanged, and
a seed repeats a run. Clocks are virtual, and each has a speed of its own.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from factory.settings import Settings
from factory.synthesis.job import Job, Slice
from factory.synthesis.leases import Leases, Wait, Watch
from factory.synthesis.objects import PutAnswer
from factory.synthesis.queue import Queue

Answer = TypeVar("Answer")

_MOST_TURNS = 100_000


class Killed(BaseException):
    """The actor is dead: its next call never returns."""


@dataclass(frozen=True)
class Faults:
    """How likely a create goes wrong, a worker is killed at a call, or a worker stops moving for a while."""

    create: float = 0.0
    kill: float = 0.0
    stall: float = 0.0


@dataclass
class Actor:
    """One worker process; `rate` is the speed of its clock."""

    name: str
    offset: float
    rate: float
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    dead: bool = False
    victim: bool = False
    stalled_until: int = 0


class World:
    """The store, the time and the workers of one run."""

    def __init__(self, job: Job, seed: int, faults: Faults) -> None:
        self.job, self.faults = job, faults
        self.random = random.Random(seed)
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.time = 0
        self.attempts: list[Slice] = []
        self.kills = 0
        self._back = threading.Semaphore(0)
        self._actors: list[Actor] = []
        self._n_started = 0
        self.errors: list[BaseException] = []

    def run(self, workers: int, term_s: float = 300.0) -> Queue:
        """Let workers finish the queue; a killed one is replaced. Return the queue as an observer has it."""
        observer = Queue(Settings(), self.job, Store(self, None))
        observer.announce()
        for _ in range(workers):
            self._start(term_s)
        while alive := [actor for actor in self._actors if not actor.dead]:
            self.time += 1
            assert self.time < _MOST_TURNS, "the workers come to no end"
            ready = [actor for actor in alive if actor.stalled_until <= self.time] or alive
            actor = self.random.choice(ready)
            if self.random.random() < self.faults.stall:
                actor.stalled_until = self.time + self.random.randrange(2 * int(term_s))
                continue
            if self.random.random() < self.faults.kill:
                actor.victim = True
                self.kills += 1
                self._start(term_s)
            actor.turn.release()
            self._back.acquire()
        if self.errors:
            raise self.errors[0]
        return observer

    def wait_for_turn(self, actor: Actor) -> None:
        """Give the turn back and wait for the next."""
        self._back.release()
        actor.turn.acquire()

    def _start(self, term_s: float) -> None:
        actor = Actor(
            f"worker-{self._n_started}", self.random.uniform(-1e9, 1e9), self.random.uniform(0.5, 2.0)
        )
        self._n_started += 1
        self._actors.append(actor)
        draws = random.Random(self.random.random())
        threading.Thread(target=self._live, args=(actor, term_s, draws), daemon=True).start()

    def _live(self, actor: Actor, term_s: float, draws: random.Random) -> None:
        actor.turn.acquire()
        try:
            self._work(actor, term_s, draws)
        except Killed:
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            actor.dead = True
            self._back.release()

    def _work(self, actor: Actor, term_s: float, draws: random.Random) -> None:
        queue = Queue(Settings(), self.job, Store(self, actor))
        beats = 0

        def beat() -> None:
            nonlocal beats
            beats += 1
            queue.beat(actor.name, f"{beats}".encode())

        def clock() -> float:
            return actor.offset + actor.rate * self.time

        beat()
        leases = Leases(queue, actor.name, "host", Watch(term_s, clock), draws)
        while (tenure := leases.take()) is not None:
            beat()
            if isinstance(tenure, Wait):
                continue
            self.attempts.append(tenure.lease.work)
            for position in range(tenure.lease.work.begin, tenure.lease.work.end):
                if tenure.lease.attempt > 1:
                    queue.note(tenure.lease, position)
                beat()
            queue.finish(tenure.lease, content(tenure.lease.work, actor.name))
        queue.bury(actor.name)


def content(work: Slice, worker: str) -> bytes:
    """The result of a slice: its rows, and who made them."""
    return f"{[*range(work.begin, work.end)]} by {worker}".encode()


class Store:
    """The objects of a world, as one actor reaches them; without an actor at once and without faults."""

    def __init__(self, world: World, actor: Actor | None) -> None:
        self._world, self._actor = world, actor

    def get(self, name: str) -> bytes | None:
        return self._call(lambda: self._world.objects.get(name, (None, 0))[0])

    def create(self, name: str, body: bytes) -> PutAnswer:
        if self._actor is None or self._world.random.random() >= self._world.faults.create:
            return self._call(lambda: self._created(name, body))
        fault = self._world.random.choice(["lost request", "lost answer", "repeated"])
        if fault == "lost request":
            return self._call(lambda: PutAnswer.UNCLEAR)
        self._call(lambda: self._created(name, body))
        return PutAnswer.UNCLEAR if fault == "lost answer" else PutAnswer.TAKEN  # by its own first request

    def put(self, name: str, body: bytes) -> None:
        self._call(lambda: self._store(name, body))

    def delete(self, names: Iterable[str]) -> None:
        self._call(lambda: [self._world.objects.pop(name, None) for name in names])

    def versions(self, prefix: str = "") -> Mapping[str, str]:
        return self._call(
            lambda: {
                name: f"{version}"
                for name, (_, version) in self._world.objects.items()
                if name.startswith(prefix)
            }
        )

    def _call(self, operation: Callable[[], Answer]) -> Answer:
        if self._actor is None:
            return operation()
        self._world.wait_for_turn(self._actor)
        before = self._world.random.random() < 0.5
        if self._actor.victim and before:
            raise Killed
        answer = operation()
        if self._actor.victim:
            raise Killed
        return answer

    def _created(self, name: str, body: bytes) -> PutAnswer:
        if name in self._world.objects:
            return PutAnswer.TAKEN
        self._store(name, body)
        return PutAnswer.STORED

    def _store(self, name: str, body: bytes) -> None:
        self._world.objects[name] = (body, self._world.time)
