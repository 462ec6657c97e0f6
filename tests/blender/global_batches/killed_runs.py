"""Producers, training runs and reclaimers of one namespace as processes, killed and paused at random.

    python -m tests.blender.global_batches.killed_runs produce URI LANE FOLDER
    python -m tests.blender.global_batches.killed_runs train URI RUN FOLDER
    python -m tests.blender.global_batches.killed_runs reclaim URI NAME FOLDER

A trainer notes the bytes of each step, writes checkpoint files, marks them, and now and then goes back to
one. Every run must note the same bytes of a step, however often it comes to it.
"""

from __future__ import annotations

import json
import random
import sys
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from blender.errors import EndOfData
from blender.global_batches.errors import BatchesGone
from blender.global_batches.log import names
from blender.global_batches.log.operations import list_names
from blender.global_batches.namespace import create_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.reclamation import reclaim_batches
from blender.global_batches.status import namespace_status
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.training_run import TrainingRun
from blender.global_batches.writer import BatchWriter
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from factory.errors import FactoryError
from factory.settings import Settings
from tests.blender.global_batches.killed_processes import (
    _END_S,
    FINISH,
    Run,
    is_at_work,
    note,
    notes_of,
    tend_for,
)

LANES = ("0", "1")
RUNS = ("a", "b")
RECLAIMERS = ("x", "y")
STEPS_BETWEEN = 4
KEPT = 2
MAX_LAG = 24


def produce(uri: str, lane: str, folder: Path) -> None:
    """Write batches until the finish is asked for; both lanes end with the same step."""
    with BatchWriter(uri, lane, max_lag=MAX_LAG) as writer:
        is_at_work(folder)
        while not writer.is_finished:
            if (folder / FINISH).exists() and writer.sequence >= int((folder / FINISH).read_text()):
                writer.finish()
                return
            rows = np.full(200, writer.sequence)
            writer.put([{"rows": rows, "lane": np.array([int(lane)])}], writer.sequence + 1)
            time.sleep(random.uniform(0, 0.02))


def train(uri: str, run: str, folder: Path) -> None:
    """Read the steps from the newest checkpoint on, mark every fourth, and go back now and then."""
    dice = random.Random()
    own = TrainingRun(uri, run, every=STEPS_BETWEEN)
    reader = BatchReader(uri)
    file = folder / f"checkpoints-{run}"
    on_disk = json.loads(file.read_text()) if file.exists() else {}  # looked for after the takeover
    live = {name: step for name, step in on_disk.items() if step >= own.held_steps.first_step}
    step = max(live.values(), default=own.held_steps.first_step)
    with (folder / f"trained-{run}").open("a") as notes:
        is_at_work(folder)
        while True:
            try:
                for batch in reader.read(StepRange(step, STEPS_BETWEEN), 0):
                    crc = zlib.crc32(batch.arrays["rows"].tobytes() + batch.arrays["lane"].tobytes())
                    note(notes, step=batch.offset, crc=crc)
                    step = batch.offset + 1
            except EndOfData:
                return
            except BatchesGone:
                own.checkpoint("zombie", step)  # a process that was replaced learns it here
                raise
            live = dict([*live.items(), (f"at-{step}", step)][-KEPT:])
            draft = file.with_suffix(f".{dice.getrandbits(32)}")
            draft.write_text(json.dumps(live))
            draft.replace(file)  # by a zombie too: its successor finds none that it holds
            own.checkpoint(f"at-{step}", step, keep=KEPT)
            if dice.random() < 0.2:
                name = dice.choice(list(own.held_steps.checkpoints))
                step = own.rolled_back(name).step_of(name)
                live = dict(own.held_steps.checkpoints)


def reclaim(uri: str, folder: Path) -> None:
    """Reclaim until the finish."""
    is_at_work(folder)
    while not (folder / FINISH).exists():
        reclaim_batches(uri)
        time.sleep(random.uniform(0, 0.05))


@dataclass
class RetentionRun(Run):
    """All processes of the namespace."""

    def command(self, kind: str, name: str) -> list[str]:
        """The command of a process."""
        return [sys.executable, "-m", __name__, kind, self.uri, name, str(self.folder)]

    def is_fenced(self, errors: str) -> bool:
        """Whether a process ended because another one has its lane or its run."""
        return "Fenced" in errors or "RunTaken" in errors


def check_retention(
    uri: str, folder: Path, kills: int, seed: int, settings: Settings, **environment: str
) -> None:
    """Hit the processes at random instants, let them finish, and compare notes and objects."""
    create_namespace(uri, Mesh(), lanes=len(LANES), settings=settings)
    run = RetentionRun(uri, folder, environment, random.Random(seed))
    try:
        for kind, processes in (("produce", LANES), ("train", RUNS), ("reclaim", RECLAIMERS)):
            for name in processes:
                run.start(kind, name)
        while kills:
            tend_for(run, run.dice.uniform(0.1, 0.6))
            kills -= run.hit()
        tend_for(run, 1.0)
        finish_at = namespace_status(uri, settings=settings).steps + 4 * MAX_LAG
        draft = folder / "finish-draft"
        draft.write_text(f"{finish_at // len(LANES)}")
        draft.replace(folder / FINISH)
        deadline = time.monotonic() + _END_S
        while run.processes:
            run.tend()
            assert time.monotonic() < deadline, f"{[entry.work for entry in run.processes]} do not end"
            time.sleep(0.02)
    finally:
        run.stop()
    _compare_notes(folder)
    _compare_objects(uri, settings)


def _compare_notes(folder: Path) -> None:
    """Every run has read every step, and all the same bytes of each."""
    bytes_of: dict[int, set[int]] = {}
    for run in RUNS:
        entries: list[dict[str, Any]] = notes_of(folder / f"trained-{run}")
        steps = {entry["step"] for entry in entries}
        assert steps == set(range(max(steps) + 1))
        for entry in entries:
            bytes_of.setdefault(entry["step"], set()).add(entry["crc"])
    assert all(len(crcs) == 1 for crcs in bytes_of.values())
    assert len({next(iter(crcs)) for crcs in bytes_of.values()}) == len(bytes_of)


def _compare_objects(uri: str, settings: Settings) -> None:
    """Two quiet reclaimers leave exactly the batches that the runs hold."""
    for _ in range(2):
        reclaim_batches(uri, settings=settings)
    status = namespace_status(uri, settings=settings)
    first = status.runs[0].first_step
    stored_names = open_store(uri, settings).run(list_names(names.BATCHES))
    assert (status.reclaimable, status.orphans, len(stored_names)) == (0, 0, status.steps - first)
    assert [step.offset for step in BatchReader(uri, settings=settings).read(StepRange(first), 0)] == list(
        range(first, status.steps)
    )
    assert status.steps - first <= KEPT * STEPS_BETWEEN + MAX_LAG


if __name__ == "__main__":
    kind, uri, name, folder = sys.argv[1:]
    try:
        match kind:
            case "produce":
                produce(uri, name, Path(folder))
            case "train":
                train(uri, name, Path(folder))
            case _:
                reclaim(uri, Path(folder))
    except FactoryError as error:
        sys.exit(f"{type(error).__name__}: {error}")
