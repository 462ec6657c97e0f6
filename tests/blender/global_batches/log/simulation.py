"""Producers and readers of one namespace over a store that loses, forgets and repeats, one call at a time.

A world is a function of its seed: which process goes on, which stalls, dies and is replaced, which request or
answer is lost, and which request arrives a second time, late. The code is that of the package. In a world of
assigned order the steps are known before it begins.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from blender.global_batches.errors import DamagedLog, Fenced, UnevenLanes
from blender.global_batches.log import checkpoints, log, names
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import (
    checkpoint_from_bytes,
    delta_from_bytes,
    finished_lane_from_bytes,
    floor_from_bytes,
    segment_from_bytes,
)
from blender.global_batches.log.operations import (
    Create,
    Creation,
    Delete,
    Get,
    GetAll,
    List,
    Operation,
    Put,
    Routine,
)
from blender.global_batches.log.state import Delta, Descriptor, LogState, content_of
from blender.global_batches.log.step_order import Arrival, Assigned

LANES = ("0", "1", "2")
N_ROWS = 18  # of each lane; a batch has one to three
ARRIVAL = Arrival()
ROWS_ASSIGNED = {"0": 18, "1": 18, "2": 16}  # two a batch: the last step is the 26th
SEGMENT_STEPS = 6
LAST_TURN = 40_000

Rows: TypeAlias = tuple[str, int, int]
"""What a batch holds: rows of a lane from a first one to the one after the last."""


def footer_hash(rows: Rows) -> bytes:
    """The hash of a batch."""
    return hashlib.blake2b(repr(rows).encode(), digest_size=16).digest()


@dataclass
class Process:
    """A routine, the operation that it waits for, and when it may go on."""

    kind: str
    name: str
    routine: Generator[Operation, Any, Any]
    number: int
    waits_for: Operation | None = None
    answers: dict[str, bytes | None] = field(default_factory=dict)  # of a GetAll
    ready_at: int = 0
    started: bool = False


class World:
    """One run of the simulation; `run` returns the invariants that it broke, by the times of each."""

    def __init__(self, seed: int, order: Arrival | Assigned = ARRIVAL, *, stale_floors: bool = False) -> None:
        self.random = random.Random(seed)
        self.order = order
        self.stale_floors = stale_floors
        """Whether half of the GETs of a floor miss one that was created in the last 500 turns."""
        self.floor_turns: dict[str, int] = {}
        """When each floor was created."""
        self.forgetful = seed % 2 == 1
        """Whether a LIST forgets a fifth of the names."""
        self.checkpoint_versions = self.random.choice((1, 2, 4))
        """Versions between checkpoints: with few of them, names are deleted soon."""
        self.objects: dict[str, bytes] = {}
        self.log: list[Delta] = []
        """Every version that counts, in order."""
        self.floor = 0
        self.acknowledged: list[bytes] = []
        self.rows: dict[bytes, Rows] = {}
        self.broken: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        """What happened to the processes and their requests."""
        self.turn = 0
        self.late: list[tuple[int, Operation]] = []
        self.processes: list[Process] = []
        self.n_processes = 0
        self.done: set[str] = set()
        self.replacements: Counter[str] = Counter()

    @property
    def steps(self) -> list[Descriptor]:
        """The true sequence of batches, up to the first step that is missing."""
        batches = {batch.step: batch for delta in self.log for batch in delta.batches}
        missing = next(step for step in range(len(batches) + 1) if step not in batches)
        return [batches[step] for step in range(missing)]

    def n_rows(self, lane: str) -> int:
        """The rows of a lane."""
        return ROWS_ASSIGNED[lane] if isinstance(self.order, Assigned) else N_ROWS

    def next_rows(self, lane: str, row: int) -> Rows:
        """The rows of the batch that begins with a row: an assigned one is the same from any producer."""
        n = 2 if isinstance(self.order, Assigned) else self.random.randint(1, 3)
        return lane, row, min(row + n, self.n_rows(lane))

    # The store

    def perform(self, operation: Operation) -> Any:
        """The answer of a store that works."""
        match operation:
            case Get(name):
                return None if self.is_hidden(name) else self.objects.get(name)
            case Create(name, body):
                if name in self.objects:
                    return Creation.TAKEN
                self.record(name, body)
                self.objects[name] = body
                return Creation.STORED
            case Put(name, body):
                self.record(name, body)
                self.objects[name] = body
            case Delete(deleted_names):
                for name in deleted_names:
                    self.objects.pop(name, None)
            case List(prefix):
                list_names = sorted(name for name in self.objects if name.startswith(prefix))
                return [name for name in list_names if not self.forgetful or self.random.random() > 0.2]
        return None

    def is_hidden(self, name: str) -> bool:
        """Whether the store does not show a floor yet."""
        turn = self.floor_turns.get(name) if self.stale_floors else None
        return turn is not None and self.turn < turn + 500 and self.random.random() < 0.5

    def record(self, name: str, body: bytes) -> None:
        """Check what a name that counts does to the history."""
        if name.startswith(names.LOG):
            delta = delta_from_bytes(body, name)
            if names.number(name) <= self.floor:  # nobody may read it
                self.events["ghost"] += 1
            else:
                if names.number(name) != len(self.log) + 1:
                    self.broken["a version was used twice or left out"] += 1
                self.log.append(delta)
        if name.startswith(names.FLOORS):
            floor = floor_from_bytes(body, name)
            if floor.version < self.floor:
                self.broken["the floor fell"] += 1
            if floor.version and names.checkpoint(floor.version) not in self.objects:
                self.broken["a floor without its checkpoint"] += 1
            self.floor = max(self.floor, floor.version)
            self.floor_turns[name] = self.turn

    # The processes

    def client(self) -> Client:
        """A client of a small namespace."""
        return Client(
            order=self.order, checkpoint_versions=self.checkpoint_versions, segment_steps=SEGMENT_STEPS
        )

    def producer(self, lane: str, incarnation: str) -> Routine[None]:
        """Make the batches of a lane from where it stands, commit them, and finish the lane."""
        knows = self.client()
        claim, state = yield from log.take(knows, lane, incarnation)
        if claim is None:
            self.events["recalled"] += lane in state.recalled_lanes
            return
        row, sequence = state.lane(lane).offset or 0, state.lane(lane).sequence
        made: list[log.StoredBatch] = []
        while not state.lane(lane).closed:
            for _ in range(self.random.randint(0 if made else 1, 3)):  # also between two attempts
                if row < self.n_rows(lane):
                    rows = self.next_rows(lane, row)
                    name = names.batch(lane, claim.epoch, sequence, incarnation)
                    yield Put(name, repr(rows).encode())
                    self.rows[footer_hash(rows)] = rows
                    descriptor = Descriptor(0, name, 1, 0, 1, footer_hash(rows))
                    made.append(log.StoredBatch(sequence, rows[2], descriptor))
                    row, sequence = rows[2], sequence + 1
            state = yield from log.attempt(knows, claim, state, made, closed=row == self.n_rows(lane))
            committed = [batch for batch in made if batch.sequence < state.lane(lane).sequence]
            self.acknowledged += [batch.descriptor.footer_hash for batch in committed]
            made = made[len(committed) :]
            state = yield from checkpoints.maintain(knows, state)

    def reader(self) -> Routine[None]:
        """Read every step in order, now and then from an earlier one."""
        knows = self.client()
        state = yield from log.load(knows)
        step, returns = 0, 0
        while step < state.steps or not self.has_ended(state):
            if step == state.steps:
                newer = yield from self.poll(knows, state)
                if newer.version < state.version:
                    self.broken["a reader went back"] += 1
                state = newer
                continue
            batch = yield from self.batch_of(knows, state, step)
            truth = self.steps
            if step >= len(truth) or batch != truth[step]:
                self.broken["a reader saw another sequence"] += 1
                return
            if (yield Get(batch.name)) is None:
                self.broken["a visible batch is missing"] += 1
            step += 1
            if returns < 2 and self.random.random() < 0.05:
                step, returns = self.random.randint(0, step), returns + 1
        if state.content != content_of(self.steps[: state.steps]) or state.waiting:
            self.broken["a reader's content differs"] += 1

    def has_ended(self, state: LogState) -> bool:
        """Whether a reader need not wait for a step that is not there."""
        all_closed = state.finished_lanes + sum(lane.closed for lane in state.lanes.values()) == len(LANES)
        if isinstance(self.order, Arrival):
            return all_closed
        if all_closed and not self.order.has_ended(state):
            self.broken["all lanes are closed, and the data have not ended"] += 1
        if self.order.has_ended(state) and state.steps != sum(ROWS_ASSIGNED.values()) // 2:
            self.broken["the data ended before their last step"] += 1
        return self.order.has_ended(state)

    def poll(self, knows: Client, state: LogState) -> Routine[LogState]:
        """What a reader does while there is no next step."""
        floor = self.floor
        newer = yield from log.advance(knows, state)
        if newer.version < floor:
            self.broken["a reader waits for a version that is deleted"] += 1
        return newer

    def batch_of(self, knows: Client, state: LogState, step: int) -> Routine[Descriptor]:
        """The batch of a step, from the tail or from its segment."""
        in_segments = len(state.segments) * SEGMENT_STEPS
        if step >= in_segments:
            return state.tail[step - in_segments]
        batches = yield from checkpoints.read_segment(knows, state, step)
        return batches[step % SEGMENT_STEPS]

    # The scheduler

    def run(self) -> Counter[str]:
        """Let all processes end, and check what they left."""
        for lane in LANES:
            self.spawn("producer", lane)
        for reader in ("reader 1", "reader 2"):
            self.spawn("reader", reader)
        wanted = {*LANES, "reader 1", "reader 2"}
        while not wanted <= self.done and self.turn < LAST_TURN and not self.broken:
            self.turn += 1
            self.deliver_late()
            ready = [process for process in self.processes if process.ready_at <= self.turn]
            if ready:
                self.step(self.random.choice(ready))
        if not self.broken:
            self.check_end(wanted)
        return self.broken

    def spawn(self, kind: str, name: str) -> None:
        """Start a process of a lane, or a reader."""
        self.n_processes += 1
        incarnation = f"{self.n_processes}"
        routine = self.producer(name, incarnation) if kind == "producer" else self.reader()
        self.processes.append(Process(kind, name, routine, self.n_processes, ready_at=self.turn))

    def deliver_late(self) -> None:
        """Repeat the requests whose time has come."""
        for entry in [entry for entry in self.late if entry[0] <= self.turn]:
            self.late.remove(entry)
            self.events["late"] += 1
            self.perform(entry[1])

    def step(self, process: Process) -> None:
        """Answer the operation of a process, or lose it, or stall, kill or replace the process."""
        draw = self.random.random
        if draw() < (0.01 if process.kind == "producer" else 0.03):
            self.events["stalled"] += 1
            process.ready_at = self.turn + self.random.randint(50, 1500)
        if draw() < 0.004 and self.replacements[process.name] < 6:
            self.replacements[process.name] += 1
            self.events["replaced"] += 1
            self.spawn(process.kind, process.name)
            if draw() < 0.5:
                self.processes.remove(process)
                return
            process.ready_at = self.turn + self.random.randint(
                0, 600
            )  # a zombie, with its request on its way
        if not process.started:
            process.started = True
            self.go_on(process, None)
            return
        answered, answer = self.answer(process)
        if answered:
            self.go_on(process, answer)

    def answer(self, process: Process) -> tuple[bool, Any]:
        """Whether an operation is answered at this turn, and how."""
        operation, draw = process.waits_for, self.random.random
        assert operation is not None
        if isinstance(operation, GetAll):
            missing = [name for name in operation.names if name not in process.answers]
            name = self.random.choice(missing)
            process.answers[name] = self.perform(Get(name))
            return len(missing) == 1, [process.answers.get(name) for name in operation.names]
        if isinstance(operation, Get | List):
            return True, self.perform(operation)
        if isinstance(operation, Delete):
            return self.delete_some(process, operation), None
        if draw() < 0.03:
            self.late.append((self.turn + self.random.randint(1, 1500), operation))
        lost = draw() < 0.03
        answer = None if lost else self.perform(operation)
        unanswered = lost or draw() < 0.06
        if unanswered:
            self.events["lost request" if lost else "lost answer"] += 1
        if not isinstance(operation, Create):
            return not unanswered, None  # the driver repeats puts
        if answer is Creation.STORED and unanswered and draw() < 0.5:
            return True, Creation.TAKEN  # what a store's client says that repeated the request
        return True, Creation.UNCLEAR if unanswered else answer

    def delete_some(self, process: Process, operation: Delete) -> bool:
        """Delete one of many objects, in any order; whether all are gone, as far as the process knows."""
        missing = [name for name in operation.names if name not in process.answers]
        if missing:
            name, draw = self.random.choice(missing), self.random.random
            if draw() < 0.03:
                self.late.append((self.turn + self.random.randint(1, 1500), Delete((name,))))
            is_lost = draw() < 0.03
            if not is_lost:
                self.perform(Delete((name,)))
            if is_lost or draw() < 0.06:
                self.events["lost request" if is_lost else "lost answer"] += 1
                return False  # the driver repeats all of them
            process.answers[name] = None
        return len(missing) <= 1

    def go_on(self, process: Process, answer: Any) -> None:
        """Send an answer, and note the next operation or the end."""
        process.answers = {}
        try:
            process.waits_for = process.routine.send(answer)
        except StopIteration:
            self.processes.remove(process)
            self.done.add(process.name)
        except Fenced:
            self.events["fenced"] += 1
            self.processes.remove(process)
            if all(other.name != process.name or other.number < process.number for other in self.processes):
                self.spawn(process.kind, process.name)  # its supervisor starts it again
        except (DamagedLog, UnevenLanes) as error:
            self.broken[type(error).__name__] += 1
            self.processes.remove(process)

    # The end

    def check_end(self, wanted: set[str]) -> None:
        """Compare what is left in the store, and what producers were told, with the true history."""
        if not wanted <= self.done:
            self.broken[f"not done: {', '.join(sorted(wanted - self.done))}"] += 1
        batches = [self.rows[batch.footer_hash] for batch in self.steps]
        if isinstance(self.order, Assigned):
            expected = [(str(step % 3), step // 3 * 2, step // 3 * 2 + 2) for step in range(26)]
            if batches != expected:
                self.broken["a step is not that of its lane"] += 1
        for lane in set(LANES) & self.done:
            bounds = [rows[1:] for rows in batches if rows[0] == lane]
            ends = [0, *(stop for _, stop in bounds)]
            if [first for first, _ in bounds] != ends[:-1] or ends[-1] != self.n_rows(lane):
                self.broken["rows of a lane twice, out of order or missing"] += 1
        if not set(self.acknowledged) <= {batch.footer_hash for batch in self.steps}:
            self.broken["acknowledged, and not visible"] += 1
        for name, state in self.left(names.CHECKPOINTS, checkpoint_from_bytes):
            expected_state = LogState().after(*self.log[: names.number(name)])
            expected_state = expected_state.without_full_segments(SEGMENT_STEPS)
            if isinstance(self.order, Arrival):
                expected_state = expected_state.without_finished_lanes()
            if state != expected_state:
                self.broken["a checkpoint that is not the fold of the log"] += 1
        for name, batches in self.left(names.SEGMENTS, segment_from_bytes):
            first = int(name.removeprefix(names.SEGMENTS).partition("-")[0])
            if list(batches) != self.steps[first : first + SEGMENT_STEPS]:
                self.broken["a segment that is not part of the log"] += 1
        last = LogState().after(*self.log)
        for name, (lane, _) in self.left(names.LANES, finished_lane_from_bytes):
            if lane != last.lane(name.removeprefix(names.LANES)):
                self.broken["a finished lane that is not where its log ends"] += 1
        for version in range(self.floor + 1, len(self.log) + 1):
            if delta_from_bytes(self.objects[names.log(version)], "log") != self.log[version - 1]:
                self.broken["a version that is not what its writer wrote"] += 1

    def left(self, prefix: str, parse: Any) -> Iterator[tuple[str, Any]]:
        """The parsed objects below a prefix."""
        return ((name, parse(body, name)) for name, body in self.objects.items() if name.startswith(prefix))
