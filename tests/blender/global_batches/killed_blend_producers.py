"""`factory batches produce` and trainers of one namespace, killed and paused at random instants.

    python -m tests.blender.global_batches.killed_blend_producers URI RANK FOLDER

A trainer notes the step and a hash of what it read, and saves its state after every step.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blender.batch import Batch
from blender.global_batches.log import log
from blender.global_batches.log.state import LogState
from blender.global_batches.namespace import create_namespace, open_namespace
from blender.global_batches.reader import BatchReader
from blender.global_batches.store.namespace_store import open_store
from blender.global_batches.stored_rows import packed_rows
from blender.spec.mesh import Mesh
from blender.spec.step_range import StepRange
from blender.trainer.local import open_blend
from factory.errors import FactoryError
from factory.settings import Settings
from tests.blender.global_batches.killed_processes import Run, Running, is_at_work, note, notes_of, tend_for

MESH = Mesh(dp=2)
LANES = 4
_KILL_S, _END_S = 20.0, 120.0  # the longest that a kill, and the rest of a run, may take


def digest(batch: Batch) -> str:
    """A hash of all that a trainer takes of a step."""
    arrays = (batch.tokens, batch.targets, batch.position_ids, batch.cu_seqlens, batch.ordinal, batch.source)
    return hashlib.blake2b(b"".join(array.tobytes() for array in arrays), digest_size=8).hexdigest()


def read(uri: str, rank: int, folder: Path) -> None:
    """Read every step from the last state on, and note it."""
    reader = BatchReader(uri, MESH)
    saved, draft = folder / f"state-{rank}", folder / f"state-{rank}.draft"
    step = reader.offset_of(json.loads(saved.read_text())) if saved.exists() else 0
    with (folder / f"read-{rank}").open("a") as notes:
        is_at_work(folder)
        for batch in reader.read(StepRange(step), rank):
            note(notes, step=batch.offset, digest=digest(packed_rows(batch)))
            draft.write_text(json.dumps(reader.state(batch.offset + 1)))
            draft.replace(saved)


@dataclass
class BlendRun(Run):
    """Producers of the command line, whose names are their lanes, and trainers."""

    blend: str = ""
    settings: Settings | None = None

    def command(self, kind: str, name: str) -> list[str]:
        if kind == "produce":
            command = [
                "factory.cli.main",
                "batches",
                "produce",
                self.uri,
                "--blend",
                self.blend,
                "--lane",
                name,
            ]
        else:
            command = [__name__, self.uri, name, str(self.folder)]
        return [sys.executable, "-m", *command]

    def is_at_work(self, running: Running) -> bool:
        """Whether a producer holds a lane, or a trainer has opened the namespace."""
        if running.kind == "read":
            return super().is_at_work(running)
        lanes = state_of(self.uri, self.settings).lanes.values()
        return any(f":{running.process.pid}:" in lane.incarnation for lane in lanes)

    def is_fenced(self, errors: str) -> bool:
        return "can commit no more" in errors


def state_of(uri: str, settings: Settings | None) -> LogState:
    """The newest state of a namespace's log."""
    store = open_store(uri, settings)
    return store.run(log.load(open_namespace(store).client()))


def check_blend_run(
    uri: str,
    folder: Path,
    blend: str,
    producers: Sequence[str],
    kills: int,
    seed: int,
    settings: Settings,
    **environment: str,
) -> LogState:
    """Hit producers and trainers at random instants until the blend ends, and compare what they left with it.

    `producers` are the lanes of each. Returns the state of the log at the end.
    """
    create_namespace(uri, MESH, lanes=LANES, order="assigned", settings=settings)
    dice = random.Random(seed)
    run = BlendRun(uri, folder, environment, dice, blend=blend, settings=settings)
    try:
        for lanes in producers:
            run.start("produce", lanes)
        for rank in range(MESH.dp):
            run.start("read", f"{rank}")
        deadline = time.monotonic() + _END_S + _KILL_S * kills
        while run.processes:
            tend_for(run, dice.uniform(0.1, 0.8))
            if kills:
                kills -= run.hit()
            assert time.monotonic() < deadline, f"{[running.name for running in run.processes]} do not end"
    finally:
        run.stop()
    assert not kills, f"the blend ended before {kills} more kills"
    expected = [list(digests(blend, rank, settings)) for rank in range(MESH.dp)]
    reader = BatchReader(uri, MESH, settings=settings)
    for rank in range(MESH.dp):
        stored = [digest(packed_rows(step)) for step in reader.read(StepRange(), rank)]
        assert stored == expected[rank]
        _compare_trainer(notes_of(folder / f"read-{rank}"), expected[rank])
    return state_of(uri, settings)


def digests(blend: str, rank: int, settings: Settings) -> Iterator[str]:
    """What `open_blend` gives a rank, step by step."""
    return map(digest, open_blend(blend, settings).fetch(rank=rank, ranks=MESH.dp))


def _compare_trainer(notes: list[dict[str, object]], expected: list[str]) -> None:
    following = 0
    for entry in notes:
        step = entry["step"]
        assert isinstance(step, int)
        assert entry["digest"] == expected[step]
        assert step in (following, following - 1), "a step was left out, or an old state loaded"
        following = step + 1
    assert following == len(expected)


if __name__ == "__main__":
    uri, rank, folder = sys.argv[1:]
    try:
        read(uri, int(rank), Path(folder))
    except FactoryError as error:
        sys.exit(f"{type(error).__name__}: {error}")
