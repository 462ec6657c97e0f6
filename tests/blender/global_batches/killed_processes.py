"""Producers and trainers of one namespace as processes, killed and paused at random instants.

    python -m tests.blender.global_batches.killed_processes produce URI LANE FOLDER
    python -m tests.blender.global_batches.killed_processes read URI RANK FOLDER

A producer makes other batches of its rows in every process, as a model would. It notes what it made and what
it was told is committed; a trainer notes what it read, and saves its state after every step.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from blender.errors import EndOfData
from blender.global_batches.format.footer import footer_hash
from blender.global_batches.format.slices import Slices, encode
from blender.global_batches.log import checkpoints, log
from blender.global_batches.log.client import Client
from blender.global_batches.log.state import Descriptor, LogState, content_of, numbered
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import NamespaceStore, open_store
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.errors import FactoryError
from factory.settings import Settings

ROOT = Path(__file__).parents[3]
LANES = ("a", "b", "c")
MESH = Mesh(dp=2)
FINISH = "finish"  # the name of the file that tells producers to finish
_END_S = 180.0


def slices_of(lane: str, first: int, stop: int, seed: int) -> Slices:
    """A batch of rows: what a process with this seed makes of them."""
    noise = np.random.default_rng(seed).integers(0, 256, (MESH.dp, 500), dtype=np.uint8)
    rows = np.arange(first, stop)
    slices = ({"rows": rows, "noise": noise[dp], "lane": np.array([ord(lane)])} for dp in range(MESH.dp))
    return Slices(tuple(slices), MESH.dp)


def produce(uri: str, lane: str, folder: Path) -> None:
    """Write batches until the finish is asked for, and note them."""
    dice = random.Random()
    with BatchWriter(uri, lane) as writer, (folder / f"made-{lane}").open("a") as notes:
        row, n_committed = writer.offset or 0, writer.committed
        is_at_work(folder)
        while not (folder / FINISH).exists() and not writer.is_finished:
            stop, seed = row + dice.randint(1, 3), dice.getrandbits(32)
            note(notes, sequence=writer.sequence, made=[row, stop, seed])
            writer.put(slices_of(lane, row, stop, seed), stop)
            row = stop
            if writer.committed != n_committed:
                n_committed = writer.committed
                note(notes, committed=n_committed)
            time.sleep(dice.uniform(0, 0.02))
        writer.finish()
        note(notes, committed=writer.committed)


def read(uri: str, rank: int, folder: Path) -> None:
    """Read every step from the last state on, and note it."""
    reader = BatchReader(uri, MESH)
    saved, draft = folder / f"state-{rank}", folder / f"state-{rank}.draft"
    step = reader.offset_of(json.loads(saved.read_text())) if saved.exists() else 0
    with (folder / f"read-{rank}").open("a") as notes:
        is_at_work(folder)
        try:
            for batch in reader.read(StepRange(step), rank):
                rows = batch.arrays["rows"]
                note(
                    notes,
                    step=batch.offset,
                    lane=chr(batch.arrays["lane"][0]),
                    rows=[int(rows[0]), int(rows[-1]) + 1],
                    noise=int(batch.arrays["noise"].astype(np.int64).sum()),
                )
                draft.write_text(json.dumps(reader.state(batch.offset + 1)))
                draft.replace(saved)
        except EndOfData:
            return


def is_at_work(folder: Path) -> None:
    """Tell the supervisor that this process has opened its lane, or the log."""
    (folder / f"at-work-{os.getpid()}").touch()


def note(notes: Any, **fields: Any) -> None:
    """Append a line, which outlives the process."""
    notes.write(json.dumps(fields) + "\n")
    notes.flush()


@dataclass
class Running:
    """A process and what it is for."""

    kind: str
    name: str
    process: subprocess.Popen[str]
    wakes_at: float = 0.0
    """When a paused process goes on; 0 for one that runs."""
    is_replaced: bool = False

    @property
    def work(self) -> tuple[str, str]:
        """What it does, which another process may do in its place."""
        return self.kind, self.name


@dataclass
class Run:
    """A run of all processes, which a supervisor starts again."""

    uri: str
    folder: Path
    environment: Mapping[str, str]
    dice: random.Random
    processes: list[Running] = field(default_factory=list)
    ended: set[tuple[str, str]] = field(default_factory=set)
    """The work that is done."""
    fenced: int = 0

    def command(self, kind: str, name: str) -> list[str]:
        """The command of a process."""
        return [sys.executable, "-m", __name__, kind, self.uri, name, str(self.folder)]

    def start(self, kind: str, name: str) -> None:
        """Start a process."""
        process = subprocess.Popen(
            self.command(kind, name),
            cwd=ROOT,
            env=os.environ | self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(Running(kind, name, process))

    def hit(self) -> bool:
        """Kill a process at work or pause it; a paused producer is replaced, and wakes as a zombie."""
        victims = [
            running
            for running in self.processes
            if not running.wakes_at
            and not running.is_replaced
            and running.process.poll() is None
            and self.is_at_work(running)
        ]
        if not victims:
            return False
        victim = self.dice.choice(victims)
        if self.dice.random() < 0.5:
            victim.process.kill()
            return True
        victim.process.send_signal(signal.SIGSTOP)
        victim.wakes_at = time.monotonic() + self.dice.uniform(0.2, 4)
        if victim.kind == "produce":
            victim.is_replaced = True
            self.start(victim.kind, victim.name)
        return True

    def is_at_work(self, running: Running) -> bool:
        """Whether a process has begun to write or read."""
        return (self.folder / f"at-work-{running.process.pid}").exists()

    def is_fenced(self, errors: str) -> bool:
        """Whether a process ended because another one has its lane."""
        return "Fenced" in errors

    def tend(self) -> None:
        """Wake the paused; start again what was killed or fenced, unless another process does its work."""
        for running in list(self.processes):
            if running.wakes_at and time.monotonic() > running.wakes_at:
                running.process.send_signal(signal.SIGCONT)
                running.wakes_at = 0.0
            code = running.process.poll()
            if code is None:
                continue
            self.processes.remove(running)
            _, errors = running.process.communicate()
            if code == 0:
                self.ended.add(running.work)
                continue
            assert code == -signal.SIGKILL or self.is_fenced(errors), errors
            self.fenced += code != -signal.SIGKILL
            if running.work not in self.ended and all(other.work != running.work for other in self.processes):
                self.start(running.kind, running.name)

    def stop(self) -> None:
        """End every process."""
        for running in self.processes:
            running.process.kill()
            running.process.communicate()


def check_run(uri: str, folder: Path, kills: int, seed: int, settings: Settings, **environment: str) -> Run:
    """Hit the processes of a run at random instants, let it finish, and compare everybody's notes."""
    create_namespace(uri, MESH, lanes=len(LANES), settings=settings, order="arrival")
    run = Run(uri, folder, environment, random.Random(seed))
    try:
        for lane in LANES:
            run.start("produce", lane)
        for rank in range(MESH.dp):
            run.start("read", f"{rank}")
        while kills:
            tend_for(run, run.dice.uniform(0.1, 1.0))
            kills -= run.hit()
        tend_for(run, 1.0)
        (folder / FINISH).touch()
        deadline = time.monotonic() + _END_S
        while run.processes:
            run.tend()
            assert time.monotonic() < deadline, f"{[running.name for running in run.processes]} do not end"
            time.sleep(0.02)
    finally:
        run.stop()
    _compare(open_store(uri, settings), folder)
    return run


def tend_for(run: Run, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        run.tend()
        time.sleep(0.02)


def _compare(store: NamespaceStore, folder: Path) -> None:
    client = Client()
    state = store.run(log.load(client))
    batches = _batches(store, client, state)
    made = {lane: notes_of(folder / f"made-{lane}") for lane in LANES}
    sequences = dict.fromkeys(LANES, 0)
    rows = dict.fromkeys(LANES, 0)
    expected, steps = [], []
    for batch in batches:
        lane = batch.name.split("/")[1]
        made_here = [entry["made"] for entry in made[lane] if entry.get("sequence") == sequences[lane]]
        encoded = {footer: entry for entry in made_here for footer in [_footer_hash(lane, entry)]}
        first, stop, seed = encoded[batch.footer_hash]  # else the log holds what nobody made
        assert first == rows[lane], f"rows of lane {lane} twice or missing before row {first}"
        rows[lane], sequences[lane] = stop, sequences[lane] + 1
        expected.append(batch)
        arrays = slices_of(lane, first, stop, seed).arrays
        noise = [int(entry["noise"].astype(np.int64).sum()) for entry in arrays]
        steps.append((lane, [first, stop], noise))
    for lane in LANES:
        last_committed = max(entry["committed"] for entry in made[lane] if "committed" in entry)
        assert state.lane(lane).sequence == sequences[lane] == last_committed
        assert state.lane(lane).offset == (rows[lane] or None)
    assert state.content == content_of(numbered(expected, range(len(expected))))
    for rank in range(MESH.dp):
        _compare_reader(notes_of(folder / f"read-{rank}"), steps, rank)


def _compare_reader(notes: list[dict[str, Any]], steps: list[Any], rank: int) -> None:
    following = 0
    for entry in notes:
        lane, rows, noise = steps[entry["step"]]
        assert (entry["lane"], entry["rows"], entry["noise"]) == (lane, rows, noise[rank])
        assert entry["step"] in (following, following - 1), "a step was left out, or an old state loaded"
        following = entry["step"] + 1
    assert following == len(steps)


def _batches(store: NamespaceStore, client: Client, state: LogState) -> list[Descriptor]:
    in_segments: list[Descriptor] = []
    for index in range(len(state.segments)):
        in_segments += store.run(checkpoints.read_segment(client, state, index * client.segment_steps))
    return [*in_segments, *state.tail]


def _footer_hash(lane: str, made: list[int]) -> bytes:
    encoded = encode(slices_of(lane, *made))
    begin = encoded.footer_offset
    return footer_hash(encoded.body[begin : begin + encoded.footer_length])


def notes_of(file: Path) -> list[dict[str, Any]]:
    """The lines of a process and of those that replaced it; the last one may be cut by a kill."""
    notes = []
    for line in file.read_text().splitlines():
        try:
            notes.append(json.loads(line))
        except ValueError:
            continue
    return notes


if __name__ == "__main__":
    kind, uri, name, folder = sys.argv[1:]
    try:
        produce(uri, name, Path(folder)) if kind == "produce" else read(uri, int(name), Path(folder))
    except FactoryError as error:
        sys.exit(f"{type(error).__name__}: {error}")
