"""The life cycle of a namespace under any interleaving: producers, training runs, and reclaimers.

A run marks its checkpoints, keeps two of them, goes back to one, dies and is started again while its zombie
reads on, or is closed. Two reclaimers raise the floor and delete, stall, and die. The store is that of
`simulation`, which loses, forgets and repeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from blender.global_batches.errors import BatchesGone, CheckpointDropped, DamagedLog, RunTaken
from blender.global_batches.log import log, marks, names, reclaim
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import floor_from_bytes
from blender.global_batches.log.operations import Get, Routine
from blender.global_batches.log.runs import START, mark_from_bytes
from blender.global_batches.log.state import LogState
from blender.global_batches.log.step_order import Arrival, Assigned
from tests.blender.global_batches.log.simulation import ARRIVAL, LANES, LAST_TURN, Process, World

STEPS_BETWEEN = 3
KEPT = 2


class LifecycleWorld(World):
    """One run of the simulation with six training runs and two reclaimers."""

    def __init__(self, seed: int, order: Arrival | Assigned = ARRIVAL) -> None:
        super().__init__(seed, order)
        self.floor_step = 0
        self.disks: dict[str, dict[str, int]] = {}
        """The checkpoints that each run has on its own disk: the step after each, by name."""
        self.newest: dict[str, str] = {}
        """The process that opened each run last."""
        self.accepted: set[str] = set()
        """Runs that were told that their batches are there."""
        self.refused: set[str] = set()
        """Processes that were told that the batches of their run are gone."""
        self.later = [(self.random.randint(0, 1200), "b")]
        self.later += [(self.random.randint(0, 4000), f"c{number}") for number in range(4)]

    def record(self, name: str, body: bytes) -> None:
        super().record(name, body)
        if name.startswith(names.FLOORS):
            floor = floor_from_bytes(body, name)
            if floor.deleted_bytes != floor.deleted:  # every batch has one byte
                self.broken["the deleted bytes are not those of the deleted batches"] += 1
            if floor.step < self.floor_step or floor.deleted > floor.step:
                self.broken["the floor of the batches fell"] += 1
            self.floor_step = max(self.floor_step, floor.step)
        if name.startswith(names.MARKS):
            mark = mark_from_bytes(body, name)
            if mark.kind == "open":
                self.newest[mark.run] = mark.owner

    def spawn(self, kind: str, name: str) -> None:
        if kind == "producer":
            super().spawn(kind, name)
            return
        self.n_processes += 1
        routine = self.reclaimer() if kind == "reclaimer" else self.trainer(name, f"{self.n_processes}")
        self.processes.append(Process(kind, name, routine, self.n_processes, ready_at=self.turn))

    # The processes

    def reclaimer(self) -> Routine[None]:
        """Reclaim again and again."""
        while True:
            knows = self.client()
            for _ in range(self.random.randint(1, 4)):
                yield from reclaim.reclaim(knows)
                for _ in range(self.random.randint(0, 20)):
                    yield Get("nothing")

    def trainer(self, run: str, owner: str) -> Routine[None]:
        """Train a run to the end of the data, from one of its checkpoints."""
        knows = self.client()
        is_first = run not in self.disks
        if is_first:  # at the oldest batch that is kept
            self.disks[run] = {START: self.floor_step if self.random.random() < 0.7 else 0}
        try:
            own = yield from marks.open_run(knows, run, owner, start=min(self.disks[run].values()))
        except BatchesGone:
            self.events["refused"] += 1
            self.refused.add(owner)
            if run in self.accepted and self.newest.get(run) == owner:
                self.broken["a run that was accepted is refused at its restart"] += 1
            return
        except RunTaken:
            self.events["taken over"] += 1
            return
        if self.newest.get(run) == owner:
            self.accepted.add(run)
        live = self.checkpoints_of(run, own.checkpoints)
        if not live:
            self.broken["a run holds none of its checkpoints"] += 1
            return
        try:
            yield from self.train(knows, run, owner, live)
        except RunTaken:
            self.events["taken over"] += 1
        except CheckpointDropped:
            self.broken["a run cannot mark what it holds"] += 1

    def checkpoints_of(self, run: str, checkpoints: Mapping[str, int]) -> dict[str, int]:
        """The checkpoints on the disk of a run that it holds: looked for after the takeover."""
        oldest = min(checkpoints.values())
        return {name: step for name, step in self.disks[run].items() if step >= oldest}

    def train(self, knows: Client, run: str, owner: str, live: dict[str, int]) -> Routine[None]:
        """Read, mark, go back, and close."""
        state = yield from log.load(knows)
        step, since, returns = self.random.choice(sorted(live.values())), 0, 0
        while step < state.steps or not self.has_ended(state):
            if step == state.steps:
                state = yield from self.poll(knows, state)
                continue
            if not (yield from self.read_step(knows, state, step, run, owner)):
                return
            step, since = step + 1, since + 1
            is_newest = self.newest.get(run) == owner
            if since == STEPS_BETWEEN:
                since = 0
                live = dict(sorted({**live, f"{step}": step}.items(), key=lambda entry: entry[1])[-KEPT:])
                if is_newest:  # first the trainer's own files, then the mark; a zombie has none
                    self.disks[run] = dict(live)
                yield from marks.hold(knows, run, owner, live)
            if returns < 2 and is_newest and self.random.random() < 0.06:
                step, returns = min(live.values()), returns + 1
                live = {name: mark for name, mark in live.items() if mark <= step}
                self.disks[run] = dict(live)
        self.accepted.discard(run)
        yield from marks.close(knows, run, owner)

    def read_step(self, knows: Client, state: LogState, step: int, run: str, owner: str) -> Routine[bool]:
        """Whether a step is there; one that is held must be."""
        is_held = self.newest.get(run) == owner
        try:
            batch = yield from self.batch_of(knows, state, step)
            is_there = (yield Get(batch.name)) is not None
        except BatchesGone:
            is_there = False
        else:
            if step >= len(self.steps) or batch != self.steps[step]:
                self.broken["a run saw another sequence"] += 1
        if not is_there and self.newest.get(run) == owner and is_held:
            self.broken["a batch that a run holds was deleted"] += 1
        if not is_there:
            self.events["lost its batches"] += 1
        return is_there

    # The scheduler

    def run(self) -> Counter[str]:
        for lane in LANES:
            self.spawn("producer", lane)
        for reclaimer in ("x", "y"):
            self.spawn("reclaimer", reclaimer)
        self.spawn("trainer", "a")
        goals = {*LANES, "a", "b"}
        while not (goals <= self.done and not self.later) and self.turn < LAST_TURN and not self.broken:
            self.turn += 1
            self.deliver_late()
            for entry in [entry for entry in self.later if entry[0] <= self.turn]:
                self.later.remove(entry)
                self.spawn("trainer", entry[1])
            ready = [process for process in self.processes if process.ready_at <= self.turn]
            if ready:
                self.step(self.random.choice(ready))
        if not self.broken:
            self.check_end(goals)
        if not self.broken:
            try:
                self.check_quiet_reclaim()
            except DamagedLog as error:
                self.broken[type(error).__name__] += 1
        return self.broken

    def check_quiet_reclaim(self) -> None:
        """Let every open run go on holding, reclaim alone on a store that works, and look at the rest."""
        self.forgetful = False
        self.processes.clear()
        self.late.clear()
        knows = self.client()
        for _ in range(2):
            self.perform_all(reclaim.reclaim(knows))
        runs = self.perform_all(marks.current(knows)).open.values()
        if any(run.owner in self.refused for run in runs):
            self.broken["a refused run holds batches"] += 1
        first = min([self.floor_step, *(run.oldest_step for run in runs if run.is_accepted)])
        live_names = {batch.name for batch in self.steps[first:]}
        stored_names = {name for name in self.objects if name.startswith(names.BATCHES)}
        if not live_names <= stored_names:
            self.broken["a quiet reclaimer deleted a live batch"] += 1
        segments = [name for name in self.objects if name.startswith(names.SEGMENTS)]
        if all(run.is_accepted for run in runs):  # one that died before holds steps that may be gone
            if not stored_names <= live_names | self.uncommitted_names():
                self.broken["a quiet reclaimer left an orphan"] += 1
            if any(names.last_of_segment(name) < first for name in segments):
                self.broken["a quiet reclaimer left a segment"] += 1
        self.events["left over"] += len(stored_names - live_names)

    def uncommitted_names(self) -> set[str]:
        """Batches that a lane has not committed, which its next process makes orphans."""
        state = LogState().after(*self.log)
        loose = set()
        for name in self.objects:
            parts = names.listed_batch(name)
            if parts and not state.lane(parts[0]).closed and parts[1] >= state.lane(parts[0]).epoch:
                loose.add(name)
        return loose

    def perform_all(self, routine: Routine[Any]) -> Any:
        """Run a routine on a store that works."""
        answer = None
        while True:
            try:
                operation = routine.send(answer)
            except StopIteration as end:
                return end.value
            if hasattr(operation, "names"):
                answer = [self.perform(Get(name)) for name in operation.names]
            else:
                answer = self.perform(operation)
