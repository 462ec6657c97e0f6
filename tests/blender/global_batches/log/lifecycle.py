"""The life cycle of a namespace under any interleaving: producers, training runs, and reclaimers.

A run marks its checkpoints, keeps two of them, goes back to one, dies and is started again while its zombie
reads on, or is closed, also by an operator while it trains. Two reclaimers raise the floor and delete, stall,
and die; some delete every batch while no run is open. The store is that of `simulation`, which loses, forgets
and repeats.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from blender.global_batches.errors import BatchesGone, CheckpointDropped, DamagedLog, RunTaken
from blender.global_batches.held_steps import HeldSteps
from blender.global_batches.log import log, marks, names, reclaim
from blender.global_batches.log.client import Client
from blender.global_batches.log.objects import floor_from_bytes
from blender.global_batches.log.operations import Get, GetAll, Routine
from blender.global_batches.log.runs import Runs, mark_from_bytes
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
        """The checkpoint files that each run has on its own disk: the step after each, by name."""
        self.newest: dict[str, str] = {}
        """The process that opened each run last."""
        self.runs = Runs()
        """The open runs after all marks."""
        self.accepted: set[str] = set()
        """Runs that were told that their batches are there."""
        self.heirs: set[str] = set()
        """Processes that took over such a run."""
        self.refused: set[str] = set()
        """Processes that were told that the batches of their run are gone."""
        self.deletes_all = self.random.random() < 0.2
        """Whether a reclaimer may delete every batch while no run is open."""
        self.later = [(self.random.randint(0, 1200), "trainer", "b")]
        self.later += [(self.random.randint(0, 4000), "trainer", f"c{number}") for number in range(4)]
        n_closes = self.random.randint(0, 2)
        self.later += [(self.random.randint(500, 5000), "operator", f"operator {n}") for n in range(n_closes)]

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
                if mark.run in self.accepted:
                    self.heirs.add(mark.owner)
            self.runs = self.runs.after(mark)
            if mark.run not in self.runs.open:
                self.accepted.discard(mark.run)

    def spawn(self, kind: str, name: str) -> None:
        if kind == "producer":
            super().spawn(kind, name)
            return
        self.n_processes += 1
        routine = {
            "reclaimer": self.reclaimer,
            "operator": self.operator,
            "trainer": lambda: self.trainer(name, f"{self.n_processes}"),
        }[kind]()
        self.processes.append(Process(kind, name, routine, self.n_processes, ready_at=self.turn))

    def has_run(self, run: str, owner: str) -> bool:
        """Whether a process has a run."""
        return run in self.runs.open and self.runs.open[run].owner == owner

    # The processes

    def reclaimer(self) -> Routine[None]:
        """Reclaim again and again."""
        while True:
            knows = self.client()
            for _ in range(self.random.randint(1, 4)):
                without_runs = self.deletes_all and self.random.random() < 0.5
                yield from reclaim.reclaim(knows, without_runs=without_runs)
                for _ in range(self.random.randint(0, 20)):
                    yield Get("nothing")

    def operator(self) -> Routine[None]:
        """Close a run, whether or not it has a process."""
        knows = self.client()
        names_of_runs = sorted((yield from marks.current(knows)).open)
        if names_of_runs:
            run = yield from marks.close_for(knows, self.random.choice(names_of_runs))
            self.events["closed by an operator"] += run is not None

    def trainer(self, run: str, owner: str) -> Routine[None]:
        """Train a run to the end of the data, from one of its checkpoints."""
        knows = self.client()
        files = self.disks.setdefault(run, {})
        start = 0
        if not files:  # at the oldest batch that is kept
            start = self.floor_step if self.random.random() < 0.7 else 0
        try:
            own = yield from marks.open_run(knows, run, owner, start=min(files.values(), default=start))
        except BatchesGone:
            self.events["refused"] += 1
            self.refused.add(owner)
            if owner in self.heirs:
                self.broken["a run that was accepted is refused at its restart"] += 1
            return
        except RunTaken:
            self.events["taken over"] += 1
            return
        if self.has_run(run, owner):
            self.accepted.add(run)
        held_steps = HeldSteps(run, own.checkpoints)
        step = self.chosen_step(files, held_steps)
        try:
            held_steps.require(step)
        except CheckpointDropped:
            if self.has_run(run, owner):
                self.broken["a run does not hold a checkpoint of its disk"] += 1
            return
        try:
            yield from self.train(knows, owner, held_steps, step)
        except RunTaken:
            self.events["taken over"] += 1
        except CheckpointDropped:
            self.broken["a run cannot mark what it holds"] += 1

    def chosen_step(self, files: dict[str, int], held_steps: HeldSteps) -> int:
        """The step after one of the checkpoints on the disk, or the start of the run."""
        return self.random.choice(sorted(files.values())) if files else held_steps.first_step

    def train(self, knows: Client, owner: str, held_steps: HeldSteps, step: int) -> Routine[None]:
        """Read, mark, go back, and close."""
        run = held_steps.run
        state = yield from log.load(knows)
        since, returns = 0, 0
        while step < state.steps or not self.has_ended(state):
            if step == state.steps:
                state = yield from self.poll(knows, state)
                continue
            if not (yield from self.read_step(knows, state, step, run, owner)):
                return
            step, since = step + 1, since + 1
            if since == STEPS_BETWEEN:
                since = 0
                held_steps = yield from self.mark(knows, owner, held_steps, step)
            if returns < 2 and self.random.random() < 0.06:
                names_there = sorted(held_steps.checkpoints.keys() & self.disks[run].keys())
                if names_there:
                    returns += 1
                    held_steps = held_steps.until(self.random.choice(names_there))
                    yield from marks.hold(knows, run, owner, held_steps.marks)
                    step = max(held_steps.checkpoints.values())
                    self.events["rolled back"] += 1
        yield from marks.close(knows, run, owner)

    def mark(self, knows: Client, owner: str, held_steps: HeldSteps, step: int) -> Routine[HeldSteps]:
        """Write a checkpoint, delete the files of the earlier ones, and move the mark."""
        run, name = held_steps.run, f"{step}"
        held_steps = held_steps.with_checkpoint(name, step, KEPT)
        yield from self.write_file(run, owner, name, step)
        yield from self.delete_files(run, owner, held_steps.first_step)
        yield from marks.hold(knows, run, owner, held_steps.marks)
        return held_steps

    def write_file(self, run: str, owner: str, name: str, step: int) -> Routine[None]:
        """Write a checkpoint file; the supervisor of a trainer that was replaced has ended its writing."""
        if self.has_run(run, owner):
            self.disks[run][name] = step
        yield Get("nothing")

    def delete_files(self, run: str, owner: str, first: int) -> Routine[None]:
        """Delete the checkpoint files before a step."""
        for name, step in list(self.disks[run].items()):
            if step < first and self.has_run(run, owner):
                self.disks[run].pop(name, None)
                yield Get("nothing")

    def read_step(self, knows: Client, state: LogState, step: int, run: str, owner: str) -> Routine[bool]:
        """Whether a step is there; one that is held must be."""
        is_held = self.has_run(run, owner)
        try:
            batch = yield from self.batch_of(knows, state, step)
            is_there = (yield Get(batch.name)) is not None
        except BatchesGone:
            is_there = False
        else:
            if step >= len(self.steps) or batch != self.steps[step]:
                self.broken["a run saw another sequence"] += 1
        if not is_there and self.has_run(run, owner) and is_held:
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
                self.spawn(*entry[1:])
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
            if isinstance(operation, GetAll):
                answer = [self.perform(Get(name)) for name in operation.names]
            else:
                answer = self.perform(operation)
